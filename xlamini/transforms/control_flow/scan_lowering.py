"""A scan in StableHLO.

The state of the loop is a counter, the carry, and one buffer for each stacked output. A turn of the loop takes a block
of slices, makes as many steps (one, unless `unroll` says more), and writes a block of slices. Steps that are left over
are written out after the loop. Where all steps are written out, there is no loop.
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
from xlamini.primitives.concatenate import concatenate

_BOOL = ShapedArray((), np.dtype(bool))
_COUNT = ShapedArray((), np.dtype(np.int32))

Blocks = list[Value]
"""Some slices of every stacked array."""


class Steps(NamedTuple):
    """A scan's steps: how many, in which order, how many make a turn of the loop (0: all)."""

    length: int
    reverse: bool
    unroll: int

    @property
    def looped(self) -> int:
        """How many steps the loop makes; 0 if there is no loop."""
        turns = self.length // self.unroll if self.unroll else 0
        return turns * self.unroll if turns > 1 else 0

    def starts(self, first: int, count: int) -> int:
        """Where the block with the slices of steps `first` to `first + count` starts."""
        return self.length - first - count if self.reverse else first


def lowered(ctx: Context, jaxpr: Jaxpr, operands: Any, steps: Steps) -> list[Value]:
    """The last carry and the stacked outputs; `operands` are the constants, the carry and the stacked inputs."""
    count = len(operands.carry)
    made = jaxpr.out_avals[count:]
    taken = jaxpr.in_avals[len(jaxpr.invars) - len(operands.xs) :]

    def turn(carry: Sequence[Value], blocks: Blocks, size: int) -> tuple[Sequence[Value], Blocks]:
        """Some steps, written out."""
        rows = []
        for k in range(size):
            at = size - 1 - k if steps.reverse else k
            xs = [_row(ctx, x, at, size, aval) for x, aval in zip(blocks, taken, strict=True)]
            outs = ctx.body(jaxpr, [*operands.consts, *carry, *xs], "body")
            carry, ys = outs[:count], outs[count:]
            rows.append(ys)
        ordered = rows[::-1] if steps.reverse else rows
        return carry, [_block(ctx, [ys[i] for ys in ordered], aval) for i, aval in enumerate(made)]

    if not steps.looped:
        carry, ys = turn(operands.carry, operands.xs, steps.length)
        return [*carry, *ys]
    carry, buffers = _looped(ctx, turn, operands, (taken, made), steps, any_ordered(jaxpr.effects))
    rest = steps.length - steps.looped
    if rest:
        at = steps.starts(steps.looped, rest)
        blocks = [_cut(ctx, x, at, rest, aval) for x, aval in zip(operands.xs, taken, strict=True)]
        carry, ys = turn(carry, blocks, rest)
        buffers = [_written(ctx, b, y, at, steps, aval) for b, y, aval in zip(buffers, ys, made, strict=True)]
    return [*carry, *buffers]


def _looped(
    ctx: Context, turn: Callable[..., Any], operands: Any, avals: tuple[Any, Any], steps: Steps, ordered: bool
) -> tuple[Sequence[Value], Blocks]:
    """The carry and the buffers after the loop."""
    count, (taken, made) = len(operands.carry), avals

    def holds(i: Value, *_: Value) -> list[Value]:
        last = ctx.constant(steps.looped, _COUNT)
        less = "#stablehlo<comparison_direction LT>"
        return [ctx.op("stablehlo.compare", i, last, avals=[_BOOL], comparison_direction=less)]

    def body(i: Value, *state: Value) -> list[Value]:
        at = _start(ctx, i, steps)
        blocks = [_taken(ctx, x, at, steps.unroll, aval) for x, aval in zip(operands.xs, taken, strict=True)]
        carry, ys = turn(state[:count], blocks, steps.unroll)
        buffers = [_written(ctx, b, y, at, steps, aval) for b, y, aval in zip(state[count:], ys, made, strict=True)]
        return [ctx.op("stablehlo.add", i, ctx.constant(steps.unroll, _COUNT), avals=[_COUNT]), *carry, *buffers]

    buffers = [ctx.constant(0, _stack_of(aval, steps.length)) for aval in made]
    _, *state = while_loop(ctx, [ctx.constant(0, _COUNT), *operands.carry, *buffers], holds, body, ordered)
    return state[:count], state[count:]


def _start(ctx: Context, i: Value, steps: Steps) -> Value:
    """Where the block of the turn that begins with step i starts."""
    if not steps.reverse:
        return i
    return ctx.op("stablehlo.subtract", ctx.constant(steps.length - steps.unroll, _COUNT), i, avals=[_COUNT])


def _taken(ctx: Context, x: Value, at: Value, size: int, aval: ShapedArray) -> Value:
    block = _stack_of(aval, size)
    return ctx.op("stablehlo.dynamic_slice", x, *_starts(ctx, at, aval), avals=[block], slice_sizes=block.shape)


def _written(ctx: Context, buffer: Value, block: Value, at: Any, steps: Steps, aval: ShapedArray) -> Value:
    place = ctx.constant(at, _COUNT) if isinstance(at, int) else at
    whole = _stack_of(aval, steps.length)
    return ctx.op("stablehlo.dynamic_update_slice", buffer, block, *_starts(ctx, place, aval), avals=[whole])


def _starts(ctx: Context, at: Value, aval: ShapedArray) -> list[Value]:
    return [at, *[ctx.constant(0, _COUNT)] * aval.ndim]


def _cut(ctx: Context, x: Value, at: int, size: int, aval: ShapedArray) -> Value:
    """The block of this size that starts at a known place."""
    block = _stack_of(aval, size)
    starts, limits, strides = [at, *[0] * aval.ndim], [at + size, *aval.shape], [1] * block.ndim
    return ctx.op("stablehlo.slice", x, avals=[block], start_indices=starts, limit_indices=limits, strides=strides)


def _row(ctx: Context, block: Value, at: int, size: int, aval: ShapedArray) -> Value:
    return ctx.reshape(block if size == 1 else _cut(ctx, block, at, 1, aval), aval)


def _block(ctx: Context, rows: Sequence[Value], aval: ShapedArray) -> Value:
    """The slices of some steps, joined."""
    if not rows:
        return ctx.constant(0, _stack_of(aval, 0))
    row = _stack_of(aval, 1)
    parts = [ctx.reshape(y, row) for y in rows]
    if len(parts) == 1:
        return parts[0]
    return ctx.inline(lambda *xs: concatenate(xs, 0), *parts, avals=[row] * len(parts))


def _stack_of(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.update(shape=(length, *aval.shape))
