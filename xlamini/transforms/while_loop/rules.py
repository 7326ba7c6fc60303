"""What the rules of `while` make of its two jaxprs, remembered on them.

Which carries have a tangent, a batch dimension, or are needed at all depends on the carries of the turn before: each of
these is found by repeating a rewrite with more carries marked until nothing changes.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr, Var
from xlamini.core.primitive import Axis
from xlamini.core.rewriting import rewrite
from xlamini.interpreters.batch import Dims, batch, batched_aval
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import Mask, jvp
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging.call.higher_order import chosen, tangents_of, until_stable
from xlamini.transforms.control_flow.carries import with_outputs_of


class Parts(NamedTuple):
    """The operands of a loop, or something that goes along with each: for the condition, for the body, the carry."""

    cond: list[Any]
    body: list[Any]
    carry: list[Any]


def parts(values: Sequence[Any], cond_nconsts: int, body_nconsts: int) -> Parts:
    start = cond_nconsts + body_nconsts
    return Parts(list(values[:cond_nconsts]), list(values[cond_nconsts:start]), list(values[start:]))


@rewrite
def body_with_tangents(body: Jaxpr, consts: Mask, carry: Mask) -> tuple[Jaxpr, Mask]:
    """consts, their tangents, carry, its tangents -> carry, its tangents; and which carries have a tangent.

    `consts` and `carry` mark the operands that have one at the start.
    """
    nonzero = until_stable(lambda marked: jvp(body, (*consts, *marked), marked)[1], carry)
    pushed, _ = jvp(body, (*consts, *nonzero), nonzero)
    count, with_consts = len(body.invars), len(body.invars) + sum(consts)
    first, primals, consts_t, carry_t = (
        pushed.invars[: len(consts)],
        pushed.invars[len(consts) : count],
        pushed.invars[count:with_consts],
        pushed.invars[with_consts:],
    )
    ordered = pushed.replace(invars=[*first, *consts_t, *primals, *carry_t])
    types = body.in_avals[len(consts) :]
    return with_outputs_of(ordered, (*types, *tangents_of(types, nonzero))), nonzero


@rewrite
def ignoring(cond: Jaxpr, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """The condition of a loop with further carries, which it does not look at."""
    return cond.replace(invars=[*cond.invars, *map(Var, avals)]) if avals else cond


class Batched(NamedTuple):
    """Both jaxprs with a batch dimension, at 0, in the carries marked, and in the predicate if it depends on it."""

    cond: Jaxpr
    body: Jaxpr
    carry: Mask


def batched(cond: Jaxpr, body: Jaxpr, axis: Axis, dims: Parts) -> Batched:
    """The loop's jaxprs for operands with these batch dimensions; those of the carry are at 0 or None."""

    def step(marked: Mask) -> Sequence[bool]:
        if _batched_cond(cond, axis, dims.cond, marked)[1]:
            return (True,) * len(marked)
        found = batch(body, axis, (*dims.body, *_dims(marked)), marked)[1]
        return [d is not None for d in found]

    carry = until_stable(step, [d is not None for d in dims.carry])
    types = tuple(
        batched_aval(a, axis, d) for a, d in zip(body.in_avals[len(dims.body) :], _dims(carry), strict=True)
    )
    of_body, _ = batch(body, axis, (*dims.body, *_dims(carry)), carry)
    return Batched(_batched_cond(cond, axis, dims.cond, carry)[0], with_outputs_of(of_body, types), carry)


def _batched_cond(cond: Jaxpr, axis: Axis, consts: Sequence[int | None], carry: Mask) -> tuple[Jaxpr, bool]:
    # A predicate with dimensions says that the carries have them too, in front.
    force = bool(cond.out_avals[0].ndim) and any(carry)
    found, dims = batch(cond, axis, (*consts, *_dims(carry)), (force,))
    if dims[0] is None:
        return found, False
    return batch(cond, axis, (*consts, *_dims(carry)), (True,))[0], True


def _dims(marked: Mask) -> Dims:
    return tuple(0 if m else None for m in marked)


def unknown_carries(cond: Jaxpr, body: Jaxpr, unknown: Parts) -> Mask:
    """Which carries cannot be known: all of them if the number of turns cannot."""

    def step(marked: Mask) -> Sequence[bool]:
        if partial_eval(cond, (*unknown.cond, *marked)).unknown_out[0]:
            return (True,) * len(marked)
        return partial_eval(body, (*unknown.body, *marked), marked).unknown_out

    return until_stable(step, unknown.carry)


class Needed(NamedTuple):
    """The operands and carries that a loop needs for some of its results."""

    cond: Mask
    body: Mask
    carry: Mask


def needed(cond: Jaxpr, body: Jaxpr, cond_nconsts: int, body_nconsts: int, used: Sequence[bool]) -> Needed:
    """What the loop needs where only the results marked in `used` are."""
    by_cond = dce(cond, (True,))[1]

    def step(marked: Mask) -> Sequence[bool]:
        by_body = dce(body, marked)[1]
        return [a or b for a, b in zip(by_cond[cond_nconsts:], by_body[body_nconsts:], strict=True)]

    carry = until_stable(step, used)
    return Needed(by_cond[:cond_nconsts], dce(body, carry)[1][:body_nconsts], carry)


@rewrite
def slim(jaxpr: Jaxpr, outputs: Mask, inputs: Mask) -> Jaxpr:
    """The jaxpr of these outputs alone, which needs no more than these inputs and takes all of them."""
    kept, _ = dce(jaxpr, outputs, True)
    return kept if all(inputs) else kept.replace(invars=chosen(kept.invars, inputs))
