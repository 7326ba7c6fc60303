"""What the rules of `scan` make of its body, remembered on it.

A body takes constants, the carry and a slice of each stacked input, and returns the carry and a slice of each stacked
output. Which carries have a tangent, a batch dimension, or are needed at all depends on the step before: each of these
is found by repeating a rewrite with more carries marked until nothing changes.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.primitive import Axis
from xlamini.core.rewriting import rewrite
from xlamini.core.tracer import build
from xlamini.interpreters.batch import Dims, batch, batched_aval
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import Mask, jvp
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.tangent_ops import add_tangents
from xlamini.staging.call.higher_order import chosen, inverse, tangents_of, until_stable
from xlamini.transforms.control_flow.carries import with_outputs_of


class Parts(NamedTuple):
    """The operands of a scan, or something that goes along with each: constants, the carry, stacked inputs."""

    consts: list[Any]
    carry: list[Any]
    xs: list[Any]

    def flat(self) -> tuple[Any, ...]:
        return *self.consts, *self.carry, *self.xs

    def then(self, own: Parts) -> Parts:
        """Those of two in turn."""
        return Parts(*([*first, *second] for first, second in zip(self, own, strict=True)))


def parts(values: Sequence[Any], num_consts: int, num_carry: int) -> Parts:
    start = num_consts + num_carry
    return Parts(list(values[:num_consts]), list(values[num_consts:start]), list(values[start:]))


class Pushed(NamedTuple):
    """The body with tangents, and which carries and stacked outputs have one."""

    body: Jaxpr
    carry: Mask
    ys: Mask


@rewrite
def with_tangents(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> Pushed:
    """Constants, carry and slices, each before their tangents -> carry and slices, each before their tangents."""
    count, none = len(carry), (False,) * (len(body.outvars) - len(carry))
    nonzero = until_stable(lambda marked: jvp(body, (*consts, *marked, *xs), (*marked, *none))[1][:count], carry)
    pushed, nonzero_out = jvp(body, (*consts, *nonzero, *xs), (*nonzero, *none))
    outs, out_tangents = pushed.outvars[: len(nonzero_out)], pushed.outvars[len(nonzero_out) :]
    split = sum(nonzero)
    primals = parts(pushed.invars[: len(body.invars)], len(consts), count)
    tangents = parts(pushed.invars[len(body.invars) :], sum(consts), split)
    arranged = pushed.replace(
        invars=primals.then(tangents).flat(),
        outvars=[*outs[:count], *out_tangents[:split], *outs[count:], *out_tangents[split:]],
    )
    types = body.out_avals[:count]
    made = with_outputs_of(arranged, (*types, *tangents_of(types, nonzero)))
    return Pushed(made, nonzero, nonzero_out[count:])


class Turned(NamedTuple):
    """A body that goes backwards, and which linear constants, carries and stacked inputs have a cotangent.

    It takes the known constants, the cotangents of constants so far and of the carry, slices of the stacked outputs'
    cotangents and of the known stacked inputs, and returns the cotangents of constants, carry, and slices.
    """

    body: Jaxpr
    consts: Mask
    carry: Mask
    xs: Mask


@rewrite
def transposed(body: Jaxpr, consts: Mask, xs: Mask, num_carry: int, carry_cts: Mask, ys_cts: Mask) -> Turned:
    """The body backwards, all of whose carries are linear; `consts` and `xs` mark what else is."""
    linear = (*consts, *(True,) * num_carry, *xs)
    before, after = (False,) * sum(consts), (False,) * sum(xs)

    def backward(marked: Mask) -> tuple[Jaxpr, Parts]:
        made, nonzero = transpose(body, linear, (*marked, *ys_cts), (*before, *marked, *after))
        return made, parts(nonzero, len(before), num_carry)

    carry = until_stable(lambda marked: backward(marked)[1].carry, carry_cts)
    made, nonzero = backward(carry)
    takes = _takes(body, consts, xs, nonzero.consts, carry, ys_cts)
    return Turned(_accumulating(made, takes), tuple(nonzero.consts), carry, tuple(nonzero.xs))


class _Takes(NamedTuple):
    """The types of what a body that goes backwards takes."""

    consts: list[ShapedArray]
    sums: list[ShapedArray]
    carry_cts: list[ShapedArray]
    ys_cts: list[ShapedArray]
    xs: list[ShapedArray]


def _takes(body: Jaxpr, consts: Mask, xs: Mask, sums: Sequence[bool], carry_cts: Mask, ys_cts: Mask) -> _Takes:
    given, count = parts(body.in_avals, len(consts), len(carry_cts)), len(carry_cts)
    return _Takes(
        chosen(given.consts, inverse(consts)),
        tangents_of(chosen(given.consts, consts), tuple(sums)),
        tangents_of(body.out_avals[:count], carry_cts),
        tangents_of(body.out_avals[count:], ys_cts),
        chosen(given.xs, inverse(xs)),
    )


def _accumulating(backward: Jaxpr, takes: _Takes) -> Jaxpr:
    """`backward` with the cotangents of constants as carries, to which each step adds."""

    def turn(*operands: Any) -> list[Any]:
        values = iter(operands)
        consts, sums, carry_cts, ys_cts, xs = ([next(values) for _ in avals] for avals in takes)
        outs = evaluate(backward, [*consts, *xs, *carry_cts, *ys_cts])
        after = [add_tangents(x, y) for x, y in zip(sums, outs, strict=False)]
        return [*after, *outs[len(after) :]]

    made, _ = build(turn, [aval for avals in takes for aval in avals], backward.name)
    return with_outputs_of(made, (*takes.sums, *takes.carry_cts))


class Batched(NamedTuple):
    """The batched body, which carries have a batch dimension, at 0, and where the slices of outputs have theirs."""

    body: Jaxpr
    carry: Mask
    ys: Dims


def batched(body: Jaxpr, axis: Axis, consts: Mask, carry: Mask, xs: Mask) -> Batched:
    """The body for inputs of which those marked have a batch dimension, at 0."""
    count, none = len(carry), (False,) * (len(body.outvars) - len(carry))

    def found(marked: Mask) -> tuple[Jaxpr, Dims]:
        dims = tuple(0 if m else None for m in (*consts, *marked, *xs))
        return batch(body, axis, dims, (*marked, *none))

    marked = until_stable(lambda marked: [d is not None for d in found(marked)[1][:count]], carry)
    made, dims = found(marked)
    types = [batched_aval(a, axis, 0 if m else None) for a, m in zip(body.out_avals, marked, strict=False)]
    return Batched(with_outputs_of(made, tuple(types)), marked, dims[count:])


def needed(body: Jaxpr, num_consts: int, num_carry: int, used: Sequence[bool]) -> tuple[Mask, Mask]:
    """The inputs and outputs of the body that a scan needs of which these results are used."""
    ys = tuple(used[num_carry:])

    def inputs(marked: Mask) -> Mask:
        return dce(body, (*marked, *ys))[1]

    carry = until_stable(lambda marked: inputs(marked)[num_consts : num_consts + num_carry], used[:num_carry])
    found = parts(inputs(carry), num_consts, num_carry)
    return (*found.consts, *carry, *found.xs), (*carry, *ys)
