"""Thomas' algorithm for tridiagonal systems: elimination downwards, substitution upwards, a loop each."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import Avals, ShapedArray, aval_of, literal
from xlamini.lowering.control_flow import while_loop
from xlamini.primitives.elementwise.arithmetic import add, div, max, mul, sub
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_p
from xlamini.primitives.shape.shape import broadcast_in_dim, expand_dims

_COUNTER = ShapedArray((), np.dtype(np.int32))


def thomas(ctx: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Lower `tridiagonal_solve` of MLIR values: the equation's operands."""
    diagonal, right = ctx.avals_in[1], ctx.avals_in[3]
    n = diagonal.shape[-1]
    empty = [ctx.constant(0, a) for a in (diagonal, right)]
    state = [*empty, dl, d, du, b]
    types = [diagonal, right, *ctx.avals_in]
    upper, solved, *_ = _loop(ctx, n, _eliminated, state, types)
    state = [empty[1], upper, solved]
    return _loop(ctx, n, _substituted, state, [right, diagonal, right])[0]


def _loop(
    ctx: Any, n: int, step: Callable[..., list[Any]], state: Sequence[Any], types: Avals
) -> list[Any]:
    """`for i in range(n): state = step(i, *state)`."""

    def holds(i: Any, *_: Any) -> list[Any]:
        return [ctx.inline(lambda k: lt(k, literal(n, _COUNTER.dtype)), i, avals=[_COUNTER])]

    def body(*state: Any) -> list[Any]:
        run = lambda i, *rest: [add(i, literal(1, _COUNTER.dtype)), *step(i, *rest)]  # noqa: E731
        return ctx.inline(run, *state, avals=[_COUNTER, *types])

    return while_loop(ctx, [ctx.constant(0, _COUNTER), *state], holds, body)[1:]


def _eliminated(i: Any, upper: Any, solved: Any, dl: Any, d: Any, du: Any, b: Any) -> list[Any]:
    """Row i without its element below the diagonal, divided by the one on it."""
    before = max(sub(i, literal(1, _COUNTER.dtype)), literal(0, _COUNTER.dtype))
    low, middle, high = (_row(v, i, 1) for v in (dl, d, du))
    pivot = sub(middle, mul(low, _row(upper, before, 1)))
    last = _row(solved, before, 2)
    right = sub(_row(b, i, 2), mul(_broadcast_diagonal(low, last), last))
    upper = _set_row(upper, div(high, pivot), i, 1)
    return [upper, _set_row(solved, div(right, _broadcast_diagonal(pivot, right)), i, 2), dl, d, du, b]


def _substituted(i: Any, x: Any, upper: Any, solved: Any) -> list[Any]:
    """Row n - 1 - i of the solution, from the row after it."""
    n = aval_of(upper).shape[-1]
    here = sub(literal(n - 1, _COUNTER.dtype), i)
    after = add(here, literal(1, _COUNTER.dtype))  # of the last row there is none: its own, still 0, is read
    below = _row(x, after, 2)
    known = mul(_broadcast_diagonal(_row(upper, here, 1), below), below)
    return [_set_row(x, sub(_row(solved, here, 2), known), here, 2), upper, solved]


def _row(x: Any, i: Any, rank: int) -> Any:
    """Element i of dimension `-rank`, which stays with size 1."""
    shape = list(aval_of(x).shape)
    shape[-rank] = 1
    return dynamic_slice_p.bind(x, *_at(x, i, rank), slice_sizes=tuple(shape))


def _set_row(x: Any, row: Any, i: Any, rank: int) -> Any:
    return dynamic_update_slice_p.bind(x, row, *_at(x, i, rank))


def _at(x: Any, i: Any, rank: int) -> list[Any]:
    starts: list[Any] = [literal(0, _COUNTER.dtype)] * aval_of(x).ndim
    starts[-rank] = i
    return starts


def _broadcast_diagonal(diagonal: Any, like: Any) -> Any:
    shape = aval_of(like).shape
    return broadcast_in_dim(expand_dims(diagonal, (len(shape) - 1,)), shape, range(len(shape)))
