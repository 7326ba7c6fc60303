"""A loop in StableHLO.

The state is the carry. Before it stands the predicate, where the body must know it (it has dimensions, and a part of
the carry stays as it is) or its effects are ordered; and before that the number of turns, where it has a limit.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.effects import any_ordered
from xlamini.core.jaxpr import Jaxpr
from xlamini.lowering.context import Context, Value
from xlamini.lowering.control_flow import while_loop

State = Callable[..., Sequence[Value]]

_BOOL = ShapedArray((), np.dtype(bool))
_COUNT = ShapedArray((), np.dtype(np.int32))


class Loop(NamedTuple):
    """The first state; whether to go on from a state; the state after it."""

    start: list[Value]
    holds: State
    turn: State


def lowered(ctx: Context, cond: Jaxpr, body: Jaxpr, operands: Any, limit: int | None) -> list[Value]:
    """The last carry; `operands` are those for the condition, for the body, and the carry."""
    loop = Loop(
        list(operands.carry),
        lambda *carry: ctx.body(cond, [*operands.cond, *carry], "cond"),
        lambda *carry: ctx.body(body, [*operands.body, *carry], "body"),
    )
    predicate = cond.out_avals[0]
    if predicate.ndim or any_ordered(cond.effects):
        loop = _with_predicate(ctx, predicate, body.out_avals, loop)
    if limit is not None:
        loop = _counted(ctx, limit, loop)
    last = while_loop(ctx, *loop, any_ordered(cond.effects | body.effects))
    return last[len(last) - len(operands.carry) :]


def _with_predicate(ctx: Context, predicate: ShapedArray, avals: Sequence[ShapedArray], loop: Loop) -> Loop:
    """The loop with the predicate in its state: what is over stays as it is."""

    def turn(p: Value, *carry: Value) -> Sequence[Value]:
        after = loop.turn(*carry)
        if predicate.ndim:
            after = [_chosen(ctx, p, predicate, *each) for each in zip(avals, after, carry, strict=True)]
        return [*loop.holds(*after), *after]

    start = [*loop.holds(*loop.start), *loop.start]
    return Loop(start, lambda p, *carry: [_any(ctx, p, predicate)], turn)


def _chosen(ctx: Context, p: Value, predicate: ShapedArray, aval: ShapedArray, after: Value, before: Value) -> Value:
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


def _counted(ctx: Context, limit: int, loop: Loop) -> Loop:
    """The loop with the number of its turns in its state, which stays below a limit."""

    def holds(i: Value, *rest: Value) -> Sequence[Value]:
        less = "#stablehlo<comparison_direction LT>"
        below = ctx.op(
            "stablehlo.compare", i, ctx.constant(limit, _COUNT), avals=[_BOOL], comparison_direction=less
        )
        return [ctx.op("stablehlo.and", below, *loop.holds(*rest), avals=[_BOOL])]

    def turn(i: Value, *rest: Value) -> Sequence[Value]:
        return [ctx.op("stablehlo.add", i, ctx.constant(1, _COUNT), avals=[_COUNT]), *loop.turn(*rest)]

    return Loop([ctx.constant(0, _COUNT), *loop.start], holds, turn)
