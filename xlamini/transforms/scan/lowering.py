"""The StableHLO lowering of `scan`.

The state of the StableHLO loop is a counter, the carry, and one buffer for each stacked output. One iteration of it
reads a block of slices, runs the body `unroll` times, and writes a block of slices. The iterations of a last, shorter
block follow the loop. A fully unrolled scan has no loop.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Jaxpr, ShapedArray, any_ordered
from xlamini.core.sizes.expression import SymbolicSize, is_less
from xlamini.lowering.bits import moved
from xlamini.lowering.context import Context, Value
from xlamini.lowering.control_flow import number
from xlamini.lowering.terms import as_terms
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.transforms.scan.rules import stack_of

_COUNT = ShapedArray((), np.dtype(np.int32))


class ScanSteps(NamedTuple):
    """The iterations of a scan: trip count, direction, and how many form a block (0: all)."""

    length: int
    reverse: bool
    unroll: int

    @property
    def rows(self) -> int:
        """The length of the arrays in the loop: a row more if there may be none, as XLA takes no slice of nothing."""
        may_be_empty = type(self.length) is SymbolicSize and not is_less(0, self.length)
        return self.length + 1 if may_be_empty else self.length

    @property
    def looped(self) -> int:
        """The number of iterations that the StableHLO loop covers; 0 if there is no loop."""
        blocks = self.length // self.unroll if self.unroll else 0
        return blocks * self.unroll if blocks not in (0, 1) else 0


class Lowering:
    """The lowering of one scan; `operands` are the consts, the carry and the xs."""

    ctx: Context
    jaxpr: Jaxpr
    operands: Any
    steps: ScanSteps

    def __init__(self, ctx: Context, jaxpr: Jaxpr, operands: Any, steps: ScanSteps):
        self.ctx, self.jaxpr, self.operands, self.steps = ctx, jaxpr, operands, steps
        self.count: int = len(operands.carry)
        self.x_avals: list[ShapedArray] = jaxpr.in_avals[len(jaxpr.invars) - len(operands.xs) :]
        self.y_avals: list[ShapedArray] = jaxpr.out_avals[self.count :]

    def results(self) -> list[Value]:
        """The last carry and the stacked outputs."""
        if self.steps.looped == 0:
            return self._run_block(self.operands.carry, self.operands.xs, self.steps.length)
        ordered = any_ordered(self.jaxpr.effects)
        buffers = [_zeros(self.ctx, stack_of(aval, self.steps.rows)) for aval in self.y_avals]
        trips, start = (self.steps.looped, self.steps.unroll), [*self.operands.carry, *buffers]
        if self.steps.rows is not self.steps.length:
            return self._with_spare_row(trips, start, ordered)
        state = self.ctx.counted_loop(*trips, start, self._body, ordered)
        rest = self.steps.length - self.steps.looped
        return self._remainder(state, rest) if rest else state

    def _with_spare_row(self, trips: tuple[int, int], start: Sequence[Value], ordered: bool) -> list[Value]:
        """The results of a loop whose arrays have one row more than it has iterations."""
        length = self.steps.length
        longer = [_one_longer(self.ctx, x, length, a) for x, a in zip(self.operands.xs, self.x_avals, strict=True)]
        self.operands = self.operands._replace(xs=longer)
        state = self.ctx.counted_loop(*trips, start, self._body, ordered)
        ys = zip(state[self.count :], self.y_avals, strict=True)
        return [*state[: self.count], *(_cut(self.ctx, y, 0, length, aval) for y, aval in ys)]

    def _run_block(self, carry: Sequence[Value], blocks: Sequence[Value], size: int) -> list[Value]:
        """`size` unrolled iterations: the carry after them, and a block of slices of each stacked output."""
        rows = []
        for k in range(size):
            at = size - 1 - k if self.steps.reverse else k
            xs = [_row(self.ctx, x, at, size, aval) for x, aval in zip(blocks, self.x_avals, strict=True)]
            outs = self.ctx.body(self.jaxpr, [*self.operands.consts, *carry, *xs], "body")
            carry = outs[: self.count]
            rows.append(outs[self.count :])
        ordered = rows[::-1] if self.steps.reverse else rows
        return [*carry, *(_block(self.ctx, [ys[i] for ys in ordered], aval) for i, aval in enumerate(self.y_avals))]

    def _body(self, i: Value, *state: Value) -> list[Value]:
        size = self.steps.unroll
        at = _start(self.ctx, i, self.steps)
        pairs = zip(self.operands.xs, self.x_avals, strict=True)
        blocks = [_read_block(self.ctx, x, at, size, aval) for x, aval in pairs]
        after = self._run_block(state[: self.count], blocks, size)
        return self._write_outputs(after, state, at)

    def _remainder(self, state: Sequence[Value], rest: int) -> list[Value]:
        """The state after the iterations of the last, shorter block."""
        at = 0 if self.steps.reverse else self.steps.looped
        blocks = [_cut(self.ctx, x, at, rest, aval) for x, aval in zip(self.operands.xs, self.x_avals, strict=True)]
        after = self._run_block(state[: self.count], blocks, rest)
        return self._write_outputs(after, state, self.ctx.constant(at, _COUNT))

    def _write_outputs(self, after: Sequence[Value], state: Sequence[Value], at: Value) -> list[Value]:
        """The carry after a block, and the buffers of `state` with the outputs of this block written at `at`."""
        buffers, blocks = state[self.count :], after[self.count :]
        whole = [stack_of(aval, self.steps.rows) for aval in self.y_avals]
        updated = [_write_block(self.ctx, b, y, at, a) for b, y, a in zip(buffers, blocks, whole, strict=True)]
        return [*after[: self.count], *updated]


def _start(ctx: Context, i: Value, steps: ScanSteps) -> Value:
    """The index of the first slice of the block that begins with iteration i."""
    if not steps.reverse:
        return i
    return ctx.op("stablehlo.subtract", number(ctx, steps.length - steps.unroll), i, avals=[_COUNT])


def _read_block(ctx: Context, x: Value, at: Value, size: int, aval: ShapedArray) -> Value:
    block = stack_of(aval, size)
    starts = _starts(ctx, at, aval)
    made = moved(ctx, "stablehlo.dynamic_slice", [x], *starts, out=block, slice_sizes=block.shape)
    return as_terms(ctx, made, block)


def _write_block(ctx: Context, buffer: Value, block: Value, at: Value, whole: ShapedArray) -> Value:
    row = whole.without(0)
    made = moved(ctx, "stablehlo.dynamic_update_slice", [buffer, block], *_starts(ctx, at, row), out=whole)
    return as_terms(ctx, made, whole)


def _starts(ctx: Context, at: Value, aval: ShapedArray) -> list[Value]:
    return [at, *[ctx.constant(0, _COUNT)] * aval.ndim]


def _cut(ctx: Context, x: Value, at: int, size: int, aval: ShapedArray) -> Value:
    """The block of `size` slices at the static index `at`."""
    block = stack_of(aval, size)
    starts, limits, strides = [at, *[0] * aval.ndim], [at + size, *aval.shape], [1] * block.ndim
    made = ctx.op("stablehlo.slice", x, avals=[block], start_indices=starts, limit_indices=limits, strides=strides)
    return as_terms(ctx, made, block)


def _one_longer(ctx: Context, x: Value, length: int, aval: ShapedArray) -> Value:
    """The stacked slices with one more, of zeros."""
    parts, whole = [x, _zeros(ctx, stack_of(aval, 1))], stack_of(aval, length + 1)
    return as_terms(ctx, ctx.op("stablehlo.concatenate", *parts, avals=[whole], dimension="0 : i64"), whole)


def _row(ctx: Context, block: Value, at: int, size: int, aval: ShapedArray) -> Value:
    return as_terms(ctx, ctx.reshape(block if size == 1 else _cut(ctx, block, at, 1, aval), aval), aval)


def _block(ctx: Context, rows: Sequence[Value], aval: ShapedArray) -> Value:
    """The output slices of one block, concatenated."""
    if not rows:
        return _zeros(ctx, stack_of(aval, 0))
    row = stack_of(aval, 1)
    parts = [as_terms(ctx, ctx.reshape(y, row), row) for y in rows]
    if len(parts) == 1:
        return parts[0]
    joined = ctx.inline(lambda *xs: concatenate(xs, 0), *parts, avals=[row] * len(parts))
    return as_terms(ctx, joined, stack_of(aval, len(parts)))


def _zeros(ctx: Context, aval: ShapedArray) -> Value:
    return as_terms(ctx, ctx.constant(0, aval), aval)
