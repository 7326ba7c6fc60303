"""A scan in StableHLO.

The state of the loop is a counter, the carry, and one buffer for each stacked output, into which every step writes its
slice. With `unroll=k` a turn has k steps; those that are left over come after the loop, written out. Where all steps
are, there is no loop, and no buffer: the slices are joined.
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

_BOOL = ShapedArray((), np.dtype(bool))
_COUNT = ShapedArray((), np.dtype(np.int32))

Step = Callable[[Any, Sequence[Value]], tuple[list[Value], list[Value]]]
"""From where the slices lie (a number or a value) and the carry to the new carry and the slices of the outputs."""


class Steps(NamedTuple):
    """A scan's steps: how many, in which order, how many make a turn of the loop."""

    length: int
    reverse: bool
    unroll: int

    @property
    def turns(self) -> int:
        """How many turns the loop has; 0 if there is no loop."""
        turns = self.length // self.unroll if self.unroll else 0  # unroll=0 means all
        return turns if turns > 1 else 0

    @property
    def looped(self) -> int:
        """How many steps the loop makes."""
        return self.turns * self.unroll

    def at(self, i: int) -> int:
        """Where the slices of step i lie."""
        return self.length - 1 - i if self.reverse else i


def lowered(ctx: Context, jaxpr: Jaxpr, operands: Any, steps: Steps) -> list[Value]:
    """The last carry and the stacked outputs; `operands` are the constants, the carry and the stacked inputs."""
    slices = jaxpr.in_avals[len(jaxpr.invars) - len(operands.xs) :]

    def step(at: Any, carry: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        xs = [_slice(ctx, x, at, steps.length, aval) for x, aval in zip(operands.xs, slices, strict=True)]
        outs = ctx.body(jaxpr, [*operands.consts, *carry, *xs], "body")
        return outs[: len(carry)], outs[len(carry) :]

    stacked = jaxpr.out_avals[len(operands.carry) :]
    if not steps.turns:
        return _written_out(ctx, step, operands.carry, stacked, steps)
    return _looped(ctx, step, operands.carry, stacked, steps, any_ordered(jaxpr.effects))


def _written_out(
    ctx: Context, step: Step, carry: Sequence[Value], stacked: Sequence[ShapedArray], steps: Steps
) -> list[Value]:
    rows = []
    for i in range(steps.length):
        carry, ys = step(steps.at(i), carry)
        rows.append(ys)
    rows = rows[::-1] if steps.reverse else rows
    return [*carry, *(_joined(ctx, [ys[k] for ys in rows], aval) for k, aval in enumerate(stacked))]


def _looped(
    ctx: Context,
    step: Step,
    carry: Sequence[Value],
    stacked: Sequence[ShapedArray],
    steps: Steps,
    ordered: bool,
) -> list[Value]:
    count, whole = len(carry), [_stack_of(a, steps.length) for a in stacked]

    def writing(at: Any, state: Sequence[Value]) -> list[Value]:
        after, ys = step(at, state[:count])
        written = [_update(ctx, b, y, at, a) for b, y, a in zip(state[count:], ys, whole, strict=True)]
        return [*after, *written]

    def holds(i: Value, *_: Value) -> list[Value]:
        last = ctx.constant(steps.looped, _COUNT)
        less = "#stablehlo<comparison_direction LT>"
        return [ctx.op("stablehlo.compare", i, last, avals=[_BOOL], comparison_direction=less)]

    def turn(i: Value, *state: Value) -> list[Value]:
        for k in range(steps.unroll):
            state = tuple(writing(_place(ctx, i, k, steps), state))
        return [ctx.op("stablehlo.add", i, ctx.constant(steps.unroll, _COUNT), avals=[_COUNT]), *state]

    start = [ctx.constant(0, _COUNT), *carry, *(ctx.constant(0, a) for a in whole)]
    _, *state = while_loop(ctx, start, holds, turn, ordered)
    for i in range(steps.looped, steps.length):
        state = writing(steps.at(i), state)
    return state


def _place(ctx: Context, i: Value, k: int, steps: Steps) -> Value:
    """Where the slices of step `i + k` lie."""
    if steps.reverse:
        return ctx.op("stablehlo.subtract", ctx.constant(steps.length - 1 - k, _COUNT), i, avals=[_COUNT])
    return ctx.op("stablehlo.add", i, ctx.constant(k, _COUNT), avals=[_COUNT]) if k else i


def _slice(ctx: Context, x: Value, at: Any, length: int, aval: ShapedArray) -> Value:
    row = _stack_of(aval, 1)
    if length == 1:
        taken = x
    elif isinstance(at, int):
        limits, ones = [at + 1, *aval.shape], [1] * row.ndim
        starts = [at, *[0] * aval.ndim]
        taken = ctx.op("stablehlo.slice", x, avals=[row], start_indices=starts, limit_indices=limits, strides=ones)
    else:
        taken = ctx.op("stablehlo.dynamic_slice", x, *_starts(ctx, at, aval), avals=[row], slice_sizes=row.shape)
    return ctx.reshape(taken, aval)


def _update(ctx: Context, buffer: Value, y: Value, at: Any, whole: ShapedArray) -> Value:
    row = whole.update(shape=(1, *whole.shape[1:]))
    slice_aval = whole.update(shape=whole.shape[1:])
    update = ctx.reshape(y, row)
    return ctx.op("stablehlo.dynamic_update_slice", buffer, update, *_starts(ctx, at, slice_aval), avals=[whole])


def _starts(ctx: Context, at: Any, aval: ShapedArray) -> list[Value]:
    first = ctx.constant(at, _COUNT) if isinstance(at, int) else at
    return [first, *[ctx.constant(0, _COUNT)] * aval.ndim]


def _joined(ctx: Context, rows: Sequence[Value], aval: ShapedArray) -> Value:
    whole, row = _stack_of(aval, len(rows)), _stack_of(aval, 1)
    if not rows:
        return ctx.constant(0, whole)
    parts = [ctx.reshape(y, row) for y in rows]
    return parts[0] if len(parts) == 1 else ctx.op("stablehlo.concatenate", *parts, avals=[whole], dimension="0 : i64")


def _stack_of(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.update(shape=(length, *aval.shape))
