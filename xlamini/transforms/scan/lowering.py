"""A scan in StableHLO.

The state of the loop is a counter, the carry, and one buffer for each stacked output. A turn of the loop takes a block
of slices, makes as many steps (one, unless `unroll` says more), and writes a block of slices. Steps that are left over
are written out after the loop. Where all steps are written out, there is no loop.
"""
from __future__ import annotations

from collections.abc import Sequence
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


class Lowering:
    """One scan; `operands` are the constants, the carry and the stacked inputs."""

    def __init__(self, ctx: Context, jaxpr: Jaxpr, operands: Any, steps: Steps):
        self.ctx, self.jaxpr, self.operands, self.steps = ctx, jaxpr, operands, steps
        self.count = len(operands.carry)
        self.taken = jaxpr.in_avals[len(jaxpr.invars) - len(operands.xs) :]
        self.made = jaxpr.out_avals[self.count :]

    def results(self) -> list[Value]:
        """The last carry and the stacked outputs."""
        if not self.steps.looped:
            return self._turn(self.operands.carry, self.operands.xs, self.steps.length)
        ordered = any_ordered(self.jaxpr.effects)
        buffers = [self.ctx.constant(0, _stack_of(aval, self.steps.length)) for aval in self.made]
        start = [self.ctx.constant(0, _COUNT), *self.operands.carry, *buffers]
        _, *state = while_loop(self.ctx, start, self._holds, self._body, ordered)
        rest = self.steps.length - self.steps.looped
        return self._remainder(state, rest) if rest else state

    def _turn(self, carry: Sequence[Value], blocks: Sequence[Value], size: int) -> list[Value]:
        """Some steps, written out: the carry after them, and a block of slices of each stacked output."""
        rows = []
        for k in range(size):
            at = size - 1 - k if self.steps.reverse else k
            xs = [_row(self.ctx, x, at, size, aval) for x, aval in zip(blocks, self.taken, strict=True)]
            outs = self.ctx.body(self.jaxpr, [*self.operands.consts, *carry, *xs], "body")
            carry = outs[: self.count]
            rows.append(outs[self.count :])
        ordered = rows[::-1] if self.steps.reverse else rows
        return [*carry, *(_block(self.ctx, [ys[i] for ys in ordered], aval) for i, aval in enumerate(self.made))]

    def _holds(self, i: Value, *_: Value) -> list[Value]:
        last, less = self.ctx.constant(self.steps.looped, _COUNT), "#stablehlo<comparison_direction LT>"
        return [self.ctx.op("stablehlo.compare", i, last, avals=[_BOOL], comparison_direction=less)]

    def _body(self, i: Value, *state: Value) -> list[Value]:
        size = self.steps.unroll
        at = _start(self.ctx, i, self.steps)
        blocks = [_taken(self.ctx, x, at, size, aval) for x, aval in zip(self.operands.xs, self.taken, strict=True)]
        after = self._turn(state[: self.count], blocks, size)
        following = self.ctx.op("stablehlo.add", i, self.ctx.constant(size, _COUNT), avals=[_COUNT])
        return [following, *self._put(after, state, at)]

    def _remainder(self, state: Sequence[Value], rest: int) -> list[Value]:
        """The state after the steps that are left over."""
        at = 0 if self.steps.reverse else self.steps.looped
        blocks = [_cut(self.ctx, x, at, rest, aval) for x, aval in zip(self.operands.xs, self.taken, strict=True)]
        after = self._turn(state[: self.count], blocks, rest)
        return self._put(after, state, self.ctx.constant(at, _COUNT))

    def _put(self, after: Sequence[Value], state: Sequence[Value], at: Value) -> list[Value]:
        """The carry after some steps, and the buffers of `state` with the blocks of these steps."""
        buffers, blocks = state[self.count :], after[self.count :]
        whole = [_stack_of(aval, self.steps.length) for aval in self.made]
        written = [_written(self.ctx, b, y, at, a) for b, y, a in zip(buffers, blocks, whole, strict=True)]
        return [*after[: self.count], *written]


def _start(ctx: Context, i: Value, steps: Steps) -> Value:
    """Where the block of the turn that begins with step i starts."""
    if not steps.reverse:
        return i
    return ctx.op("stablehlo.subtract", ctx.constant(steps.length - steps.unroll, _COUNT), i, avals=[_COUNT])


def _taken(ctx: Context, x: Value, at: Value, size: int, aval: ShapedArray) -> Value:
    block = _stack_of(aval, size)
    return ctx.op("stablehlo.dynamic_slice", x, *_starts(ctx, at, aval), avals=[block], slice_sizes=block.shape)


def _written(ctx: Context, buffer: Value, block: Value, at: Value, whole: ShapedArray) -> Value:
    row = whole.update(shape=whole.shape[1:])
    return ctx.op("stablehlo.dynamic_update_slice", buffer, block, *_starts(ctx, at, row), avals=[whole])


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
