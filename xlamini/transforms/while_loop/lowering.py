"""The StableHLO lowering of `while` and `bounded_while`.

The state of the StableHLO loop is the carry. The predicate precedes it if the condition has ordered effects, or if the
body needs its value (a batched predicate masks the update of the carry) and it is not cheap to compute it again there.
A step counter comes first if the trip count is bounded.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Avals, Jaxpr, ShapedArray, any_ordered
from xlamini.core.program.primitive import REMATERIALIZABLE
from xlamini.lowering.context import Context, Value
from xlamini.lowering.control_flow import while_loop
from xlamini.transforms.while_loop.ranges import Counter, counter_of

State = Callable[..., Sequence[Value]]

_BOOL = ShapedArray((), np.dtype(bool))
_COUNT = ShapedArray((), np.dtype(np.int32))


class StableHloLoop(NamedTuple):
    """The initial state, the condition and the body of a StableHLO loop."""

    start: list[Value]
    holds: State
    iteration: State


def lower_while(ctx: Context, cond: Jaxpr, body: Jaxpr, operands: Any, limit: int | None) -> list[Value]:
    """Lower a loop of at most `limit` iterations; returns the last carry."""
    counter = counter_of(cond, body, len(operands.body)) if ctx.takes_ranges and limit is None else None
    if counter is not None:
        return _over_range(ctx, counter, body, operands)
    loop = StableHloLoop(
        list(operands.carry),
        lambda *carry: ctx.body(cond, [*operands.cond, *carry], "cond"),
        lambda *carry: ctx.body(body, [*operands.body, *carry], "body"),
    )
    predicate = cond.out_avals[0]
    if predicate.ndim and _is_cheap(cond):
        loop = _with_predicate_again(ctx, predicate, body.out_avals, loop)
    elif predicate.ndim or any_ordered(cond.effects):
        loop = _with_predicate(ctx, predicate, body.out_avals, loop)
    if limit is not None:
        loop = _with_counter(ctx, limit, loop)
    last = while_loop(ctx, *loop, any_ordered(cond.effects | body.effects))
    return last[len(last) - len(operands.carry) :]


def _over_range(ctx: Context, counter: Counter, body: Jaxpr, operands: Any) -> list[Value]:
    """The loop without the counter in its state."""
    index, carry = counter.index, operands.carry

    def iteration(i: Value, *rest: Value) -> Sequence[Value]:
        after = ctx.body(body, [*operands.body, *rest[:index], i, *rest[index:]], "body")
        return [*after[:index], *after[index + 1 :]]

    start, stop = carry[index], carry[counter.stop]
    last = ctx.loop_over_range(start, stop, [*carry[:index], *carry[index + 1 :]], iteration)
    kind = body.in_avals[len(operands.body) + index]
    end = ctx.op("stablehlo.maximum", start, stop, avals=[kind])
    return [*last[:index], end, *last[index:]]


_FEW = 8


def _is_cheap(cond: Jaxpr) -> bool:
    """Whether a condition is so short that it costs less in the operations that need it than as a value of its own."""
    if cond.effects or len(cond.eqns) > _FEW:
        return False
    return all(eqn.primitive.traits & REMATERIALIZABLE for eqn in cond.eqns)


def _with_predicate_again(ctx: Context, predicate: ShapedArray, avals: Avals, loop: StableHloLoop) -> StableHloLoop:
    """The loop that computes a batched predicate twice, for itself and for the update of the carry."""

    def iteration(*carry: Value) -> Sequence[Value]:
        (p,), after = loop.holds(*carry), loop.iteration(*carry)
        return [_select(ctx, p, predicate, *each) for each in zip(avals, after, carry, strict=True)]

    return StableHloLoop(loop.start, lambda *carry: [_any(ctx, loop.holds(*carry)[0], predicate)], iteration)


def _with_predicate(ctx: Context, predicate: ShapedArray, avals: Avals, loop: StableHloLoop) -> StableHloLoop:
    """The loop with the predicate in its state; where a batched predicate is false, the carry is not updated."""

    def iteration(p: Value, *carry: Value) -> Sequence[Value]:
        after = loop.iteration(*carry)
        if predicate.ndim:
            after = [_select(ctx, p, predicate, *each) for each in zip(avals, after, carry, strict=True)]
        return [*loop.holds(*after), *after]

    start = [*loop.holds(*loop.start), *loop.start]
    return StableHloLoop(start, lambda p, *carry: [_any(ctx, p, predicate)], iteration)


def _select(ctx: Context, p: Value, predicate: ShapedArray, aval: ShapedArray, after: Value, before: Value) -> Value:
    if after is before:
        return before
    where = ctx.broadcast(p, range(predicate.ndim), aval.update(dtype=_BOOL.dtype, weak_type=False))
    return ctx.op("stablehlo.select", where, after, before, avals=[aval])


def _any(ctx: Context, p: Value, predicate: ShapedArray) -> Value:
    if not predicate.ndim:
        return p
    either = ctx.scalar_region([_BOOL] * 2, lambda a, b: [ctx.op("stablehlo.or", a, b, avals=[_BOOL])])
    return ctx.op(
        "stablehlo.reduce",
        p,
        ctx.constant(False, _BOOL),
        avals=[_BOOL],
        regions=[either],
        dimensions=list(range(predicate.ndim)),
    )


def _with_counter(ctx: Context, limit: int, loop: StableHloLoop) -> StableHloLoop:
    """The loop with a step counter in its state, which stops it at `limit`."""

    def holds(i: Value, *rest: Value) -> Sequence[Value]:
        less = "#stablehlo<comparison_direction LT>"
        below = ctx.op(
            "stablehlo.compare", i, ctx.constant(limit, _COUNT), avals=[_BOOL], comparison_direction=less
        )
        return [ctx.op("stablehlo.and", below, *loop.holds(*rest), avals=[_BOOL])]

    def iteration(i: Value, *rest: Value) -> Sequence[Value]:
        return [ctx.op("stablehlo.add", i, ctx.constant(1, _COUNT), avals=[_COUNT]), *loop.iteration(*rest)]

    return StableHloLoop([ctx.constant(0, _COUNT), *loop.start], holds, iteration)
