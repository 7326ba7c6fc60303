"""A loop in StableHLO.

The state is the carry. Before it stands the predicate, where the body must know it (it has dimensions, and a part of
the carry stays as it is) or its effects are ordered; and before that the number of turns, where it has a limit.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.effects import any_ordered
from xlamini.core.jaxpr import Jaxpr
from xlamini.lowering.context import Context, Value
from xlamini.lowering.control_flow import while_loop

State = Callable[..., Sequence[Value]]

_BOOL = ShapedArray((), np.dtype(bool))
_COUNT = ShapedArray((), np.dtype(np.int32))


def lowered(ctx: Context, cond: Jaxpr, body: Jaxpr, operands: Any, limit: int | None) -> list[Value]:
    """The last carry; `operands` are those for the condition, for the body, and the carry."""

    def holds(*carry: Value) -> Value:
        return ctx.body(cond, [*operands.cond, *carry], "cond")[0]

    def turn(*carry: Value) -> Sequence[Value]:
        return ctx.body(body, [*operands.body, *carry], "body")

    start, test, step = list(operands.carry), lambda *carry: [holds(*carry)], turn
    predicate = cond.out_avals[0]
    if predicate.ndim or any_ordered(cond.effects):
        start = [holds(*start), *start]
        test = lambda p, *carry: [_any(ctx, p, predicate)]
        step = _with_predicate(ctx, predicate, body.out_avals, holds, turn)
    if limit is not None:
        start, test, step = [ctx.constant(0, _COUNT), *start], _below(ctx, limit, test), _counted(ctx, step)
    state = while_loop(ctx, start, test, step, any_ordered(cond.effects | body.effects))
    return state[len(state) - len(operands.carry) :]


def _with_predicate(
    ctx: Context, predicate: ShapedArray, avals: Sequence[ShapedArray], holds: Callable[..., Value], turn: State
) -> State:
    """The turn of a loop that has its predicate in its state: what is over stays as it is."""

    def step(p: Value, *carry: Value) -> Sequence[Value]:
        after = turn(*carry)
        if predicate.ndim:
            after = [_chosen(ctx, p, predicate, *pair) for pair in zip(avals, after, carry, strict=True)]
        return [holds(*after), *after]

    return step


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


def _below(ctx: Context, limit: int, test: State) -> State:
    def bounded(i: Value, *rest: Value) -> Sequence[Value]:
        below = ctx.op(
            "stablehlo.compare",
            i,
            ctx.constant(limit, _COUNT),
            avals=[_BOOL],
            comparison_direction="#stablehlo<comparison_direction LT>",
        )
        return [ctx.op("stablehlo.and", below, *test(*rest), avals=[_BOOL])]

    return bounded


def _counted(ctx: Context, step: State) -> State:
    def counting(i: Value, *rest: Value) -> Sequence[Value]:
        return [ctx.op("stablehlo.add", i, ctx.constant(1, _COUNT), avals=[_COUNT]), *step(*rest)]

    return counting
