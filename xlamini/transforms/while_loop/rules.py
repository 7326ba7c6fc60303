"""Rewrites of the condition and body of a `while` (jvp, batch, partial evaluation, dead code), memoized on the jaxprs.

Whether a carry has a tangent, has a batch dimension, is unknown or is live depends on the iteration before. These masks
are fixed points: the rewrite is repeated with more carries marked until no further one is added.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Axis, Jaxpr, ShapedArray, Values, Var, rewrite
from xlamini.interpreters.batch import Dims, batch, batched_aval
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import Mask, jvp
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging import chosen, inverse
from xlamini.staging.call.higher_order import tangents_of, until_stable
from xlamini.transforms.control_flow.carries import with_outputs_of


class LoopParts(NamedTuple):
    """The operands of a loop, or one attribute of each operand (a tangent, a mask), by role."""

    cond: list[Any]
    body: list[Any]
    carry: list[Any]

    def flat(self) -> tuple[Any, ...]:
        return *self.cond, *self.body, *self.carry


def parts(values: Values, cond_nconsts: int, body_nconsts: int) -> LoopParts:
    start = cond_nconsts + body_nconsts
    return LoopParts(list(values[:cond_nconsts]), list(values[cond_nconsts:start]), list(values[start:]))


@rewrite
def jvp_body(body: Jaxpr, consts: Mask, carry: Mask) -> tuple[Jaxpr, Mask]:
    """The jvp of the body, and a mask of the carries with nonzero tangents.

    consts, their tangents, carry, its tangents -> carry, its tangents

    `consts` and `carry` mark the operands of the loop with nonzero tangents.
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
def widen_cond(cond: Jaxpr, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """The condition with further, unused inputs: the carries that a rewrite adds to the loop."""
    return cond.replace(invars=[*cond.invars, *map(Var, avals)]) if avals else cond


def lanes_as_carry(cond: Jaxpr, body: Jaxpr, in_cond: Mask, in_body: Mask) -> tuple[Jaxpr, Jaxpr]:
    """Both jaxprs with the marked consts as further carries: first those of the condition."""
    cond_consts, body_consts = cond.invars[: len(in_cond)], body.invars[: len(in_body)]
    of_cond, of_body = chosen(cond_consts, in_cond), chosen(body_consts, in_body)
    for_body, for_cond = ([Var(v.aval) for v in lanes] for lanes in (of_cond, of_body))
    carry = [*body.invars[len(in_body) :], *for_body, *of_body]
    holds = cond.replace(
        invars=[*chosen(cond_consts, inverse(in_cond)), *cond.invars[len(in_cond) :], *of_cond, *for_cond]
    )
    iteration = body.replace(
        invars=[*chosen(body_consts, inverse(in_body)), *carry], outvars=[*body.outvars, *for_body, *of_body]
    )
    return holds, iteration


class BatchedLoop(NamedTuple):
    """Both batched jaxprs: the marked carries have batch dimension 0, and so has a predicate that depends on them."""

    cond: Jaxpr
    body: Jaxpr
    carry: Mask


def batch_jaxprs(cond: Jaxpr, body: Jaxpr, axis: Axis, dims: LoopParts) -> BatchedLoop:
    """Batch both jaxprs for operands with these batch dimensions; a carry's dimension is 0 or None."""

    def step(marked: Mask) -> Sequence[bool]:
        if _batch_cond(cond, axis, dims.cond, marked)[1]:
            return (True,) * len(marked)
        out_dims = batch(body, axis, (*dims.body, *_dims(marked)), marked)[1]
        return [d is not None for d in out_dims]

    carry = until_stable(step, [d is not None for d in dims.carry])
    types = tuple(
        batched_aval(a, axis, d) for a, d in zip(body.in_avals[len(dims.body) :], _dims(carry), strict=True)
    )
    of_body, _ = batch(body, axis, (*dims.body, *_dims(carry)), carry)
    return BatchedLoop(_batch_cond(cond, axis, dims.cond, carry)[0], with_outputs_of(of_body, types), carry)


def _batch_cond(cond: Jaxpr, axis: Axis, consts: Sequence[int | None], carry: Mask) -> tuple[Jaxpr, bool]:
    # The carries of a batched predicate have its dimensions in front, so a nested batch must add to both.
    force = bool(cond.out_avals[0].ndim) and any(carry)
    batched, dims = batch(cond, axis, (*consts, *_dims(carry)), (force,))
    if dims[0] is None:
        return batched, False
    return batch(cond, axis, (*consts, *_dims(carry)), (True,))[0], True


def _dims(marked: Mask) -> Dims:
    return tuple(0 if m else None for m in marked)


def unknown_carries(cond: Jaxpr, body: Jaxpr, unknown: LoopParts) -> Mask:
    """A mask of the unknown carries: all of them if the predicate, and so the trip count, is unknown."""

    def step(marked: Mask) -> Sequence[bool]:
        if partial_eval(cond, (*unknown.cond, *marked)).unknown_out[0]:
            return (True,) * len(marked)
        return partial_eval(body, (*unknown.body, *marked), marked).unknown_out

    return until_stable(step, unknown.carry)


class Live(NamedTuple):
    """Masks of the live consts of the condition, consts of the body, and carries."""

    cond: Mask
    body: Mask
    carry: Mask


def live_operands(cond: Jaxpr, body: Jaxpr, cond_nconsts: int, body_nconsts: int, used: Sequence[bool]) -> Live:
    """Masks of the live operands, where `used` marks the live results; the condition is always live."""
    by_cond = dce(cond, (True,))[1]

    def step(marked: Mask) -> Sequence[bool]:
        by_body = dce(body, marked)[1]
        return [a or b for a, b in zip(by_cond[cond_nconsts:], by_body[body_nconsts:], strict=True)]

    carry = until_stable(step, used)
    return Live(by_cond[:cond_nconsts], dce(body, carry)[1][:body_nconsts], carry)


@rewrite
def prune(jaxpr: Jaxpr, outputs: Mask, inputs: Mask) -> Jaxpr:
    """The jaxpr with the marked outputs and inputs only; `inputs` marks at least the live inputs."""
    pruned, _ = dce(jaxpr, outputs, True)
    return pruned if all(inputs) else pruned.replace(invars=chosen(pruned.invars, inputs))
