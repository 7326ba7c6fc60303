"""Rewrites of a scan body (jvp, transpose, batch, dead code), each memoized on the body.

A body takes the consts, the carry and one slice of each x, and returns the carry and one slice of each y. Whether a
carry has a tangent, has a batch dimension or is live depends on the iteration before. These masks are fixed points: the
rewrite is repeated with more carries marked until no further one is added.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Axis, Jaxpr, ShapedArray, Values, cotangent_aval, rewrite
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import Dims, batch, batched_aval
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import Mask, jvp
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.base.tangent_ops import add_tangents
from xlamini.staging import chosen, inverse
from xlamini.staging.call.higher_order import tangents_of, until_stable
from xlamini.transforms.control_flow.carries import with_outputs_of


class ScanParts(NamedTuple):
    """The operands of a scan, or one attribute of each operand (a tangent, a mask), by role."""

    consts: list[Any]
    carry: list[Any]
    xs: list[Any]

    def flat(self) -> tuple[Any, ...]:
        return *self.consts, *self.carry, *self.xs

    def then(self, own: ScanParts) -> ScanParts:
        """Concatenate field by field: consts, carry, xs."""
        return ScanParts(*([*first, *second] for first, second in zip(self, own, strict=True)))


def parts(values: Values, num_consts: int, num_carry: int) -> ScanParts:
    start = num_consts + num_carry
    return ScanParts(list(values[:num_consts]), list(values[num_consts:start]), list(values[start:]))


def stack_of(aval: ShapedArray, length: int) -> ShapedArray:
    """The aval of `length` slices stacked along a new dimension 0, which is not sharded."""
    return aval.inserted(0, length)


class JvpBody(NamedTuple):
    """The jvp of a body, and masks of the carries and ys whose tangents are nonzero."""

    body: Jaxpr
    carry: Mask
    ys: Mask


@rewrite
def jvp_body(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> JvpBody:
    """The jvp of the body, with its inputs and outputs in the order of a scan.

    consts, their tangents, carry, its tangents, xs, their tangents -> carry, its tangents, ys, their tangents
    """
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
    return JvpBody(made, nonzero, nonzero_out[count:])


class TransposedBody(NamedTuple):
    """The transpose of a body, and masks of the linear consts, carries and xs whose cotangents are nonzero.

    nonlinear consts, sums of the cotangents of consts, cotangents of the carry, cotangents of ys, nonlinear xs ->
    the new sums, cotangents of the carry, cotangents of xs
    """

    body: Jaxpr
    consts: Mask
    carry: Mask
    xs: Mask


@rewrite
def transpose_body(
    body: Jaxpr, consts: Mask, xs: Mask, num_carry: int, carry_cts: Mask, ys_cts: Mask
) -> TransposedBody:
    """The transpose of a body that is linear in all carries; `consts` and `xs` mask the other linear inputs."""
    linear = (*consts, *(True,) * num_carry, *xs)
    before, after = (False,) * sum(consts), (False,) * sum(xs)

    def backward(marked: Mask) -> tuple[Jaxpr, ScanParts]:
        made, nonzero = transpose(body, linear, (*marked, *ys_cts), (*before, *marked, *after))
        return made, parts(nonzero, len(before), num_carry)

    carry = until_stable(lambda marked: backward(marked)[1].carry, carry_cts)
    made, nonzero = backward(carry)
    types = _backward_inputs(body, consts, xs, nonzero.consts, carry, ys_cts)
    return TransposedBody(_accumulate_consts(made, types), tuple(nonzero.consts), carry, tuple(nonzero.xs))


class _BackwardInputs(NamedTuple):
    """The input types of a transposed body, by role."""

    consts: list[ShapedArray]
    sums: list[ShapedArray]
    carry_cts: list[ShapedArray]
    ys_cts: list[ShapedArray]
    xs: list[ShapedArray]


def _backward_inputs(
    body: Jaxpr, consts: Mask, xs: Mask, sums: Sequence[bool], carry_cts: Mask, ys_cts: Mask
) -> _BackwardInputs:
    forward, count = parts(body.in_avals, len(consts), len(carry_cts)), len(carry_cts)
    return _BackwardInputs(
        chosen(forward.consts, inverse(consts)),
        list(map(cotangent_aval, chosen(chosen(forward.consts, consts), tuple(sums)))),
        list(map(cotangent_aval, chosen(body.out_avals[:count], carry_cts))),
        list(map(cotangent_aval, chosen(body.out_avals[count:], ys_cts))),
        chosen(forward.xs, inverse(xs)),
    )


def _accumulate_consts(backward: Jaxpr, types: _BackwardInputs) -> Jaxpr:
    """`backward` with the cotangents of consts as carries, to which each iteration adds."""

    def iteration(*operands: Any) -> list[Any]:
        values = iter(operands)
        consts, sums, carry_cts, ys_cts, xs = ([next(values) for _ in avals] for avals in types)
        outs = evaluate(backward, [*consts, *xs, *carry_cts, *ys_cts])
        after = [add_tangents(x, y) for x, y in zip(sums, outs, strict=False)]
        return [*after, *outs[len(after) :]]

    made, _ = build(iteration, [aval for avals in types for aval in avals], backward.name)
    return with_outputs_of(made, (*types.sums, *types.carry_cts))


class BatchedBody(NamedTuple):
    """The batched body, a mask of the carries with a batch dimension (at 0), and the batch dimensions of y slices."""

    body: Jaxpr
    carry: Mask
    ys: Dims


def batch_body(body: Jaxpr, axis: Axis, consts: Mask, carry: Mask, xs: Mask) -> BatchedBody:
    """The batched body; the masks mark the inputs that have a batch dimension, at 0."""
    count, none = len(carry), (False,) * (len(body.outvars) - len(carry))

    def batch_for(marked: Mask) -> tuple[Jaxpr, Dims]:
        dims = tuple(0 if m else None for m in (*consts, *marked, *xs))
        return batch(body, axis, dims, (*marked, *none))

    marked = until_stable(lambda marked: [d is not None for d in batch_for(marked)[1][:count]], carry)
    made, dims = batch_for(marked)
    types = [batched_aval(a, axis, 0 if m else None) for a, m in zip(body.out_avals, marked, strict=False)]
    return BatchedBody(with_outputs_of(made, tuple(types)), marked, dims[count:])


def live_masks(body: Jaxpr, num_consts: int, num_carry: int, used: Sequence[bool]) -> tuple[Mask, Mask]:
    """Masks of the body's live inputs and outputs, where `used` marks the live results of the scan."""
    ys = tuple(used[num_carry:])

    def inputs(marked: Mask) -> Mask:
        return dce(body, (*marked, *ys))[1]

    carry = until_stable(lambda marked: inputs(marked)[num_consts : num_consts + num_carry], used[:num_carry])
    live = parts(inputs(carry), num_consts, num_carry)
    return (*live.consts, *carry, *live.xs), (*carry, *ys)
