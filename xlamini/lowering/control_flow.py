"""Loops and branches in StableHLO; a token is threaded through those with ordered effects.

A region may use values from outside; it returns the new loop state or the branch's results.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlamini.core import ShapedArray
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.lowering.bits import as_bits, bits_of_value, from_bits

if TYPE_CHECKING:  # primitives import this file, and so would MLIR's bindings with it
    from jaxlib.mlir import ir

    from xlamini.lowering.context import Context

Value = Any
Body = Callable[..., Sequence[Value]]
_COUNT = ShapedArray((), np.dtype(np.int32))


def while_loop(ctx: Context, start: Sequence[Value], holds: Body, body: Body, ordered: bool = False) -> list[Value]:
    """The final state of `while holds(*state): state = body(*state)`. `ordered`: the body has ordered effects."""
    bits = [bits_of_value(ctx, x) for x in start]
    if set(bits) - {None}:  # a loop of their bits
        outside = [x.type for x in start]
        state = while_loop(
            ctx,
            as_bits(ctx, start, bits),
            lambda *carried: holds(*from_bits(ctx, carried, outside)),
            lambda *carried: as_bits(ctx, body(*from_bits(ctx, carried, outside)), bits),
            ordered,
        )
        return from_bits(ctx, state, outside)
    first = [ctx.current_token(), *start] if ordered else start
    types = [x.type for x in first]
    regions = [_without_token(ctx, types, holds, ordered), _with_token(ctx, types, body, ordered)]
    return _results(ctx, ctx.many("stablehlo.while", first, types, regions), ordered)


def counted_loop(
    ctx: Context, trips: int, step: int, state: Sequence[Value], body: Body, ordered: bool = False
) -> list[Value]:
    """The final state of `for i in range(0, trips, step): state = body(i, *state)`, with i an int32."""
    count, less = _COUNT, "#stablehlo<comparison_direction LT>"

    def holds(i: Value, *_: Value) -> list[Value]:
        last, flag = number(ctx, trips), ShapedArray((), np.dtype(bool))
        return [ctx.op("stablehlo.compare", i, last, avals=[flag], comparison_direction=less)]

    def run(i: Value, *state: Value) -> list[Value]:
        after = body(i, *state)
        return [ctx.op("stablehlo.add", i, ctx.constant(step, count), avals=[count]), *after]

    return while_loop(ctx, [ctx.constant(0, count), *state], holds, run, ordered)[1:]


def number(ctx: Context, size: int) -> Value:
    """A size, which may be symbolic, as an int32."""
    return ctx.size(size) if type(size) is SymbolicSize else ctx.constant(size, _COUNT)


def case(ctx: Context, index: Value, branches: Sequence[Body], avals: Sequence[Any], ordered: bool = False) -> Any:
    """The results, of types `avals`, of the branch at `index`, an int32; an index out of range selects the last."""
    if ordered:
        ctx.current_token()
    types = [ctx.mlir.type(a) for a in avals]
    if ordered:
        types.insert(0, ctx.mlir.token)
    regions = [_branch(ctx, branch, ordered) for branch in branches]
    return _results(ctx, ctx.many("stablehlo.case", [index], types, regions), ordered)


def _results(ctx: Context, results: list[Value], ordered: bool) -> list[Value]:
    if not ordered:
        return results
    ctx.token = results[0]
    return results[1:]


def _without_token(ctx: Context, types: Sequence[ir.Type], body: Body, ordered: bool) -> Any:
    return ctx.region(types, lambda *args: body(*args[ordered:]))


def _with_token(ctx: Context, types: Sequence[ir.Type], body: Body, ordered: bool) -> Any:
    def filled(*args: Value) -> Sequence[Value]:
        if not ordered:
            return body(*args)
        ctx.token = args[0]
        outs = body(*args[1:])
        return [ctx.token, *outs]

    return ctx.region(types, filled)


def _branch(ctx: Context, branch: Body, ordered: bool) -> Any:
    before = ctx.token

    def filled() -> Sequence[Value]:
        ctx.token = before
        outs = branch()
        return [ctx.token, *outs] if ordered else outs

    return ctx.region([], filled)
