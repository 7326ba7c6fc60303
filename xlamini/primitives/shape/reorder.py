"""Elements in another order, or one of each row: gathers with one place for each element of the result."""

from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xlamini.primitives.shape.shape import expand_dims


def permuted(x: Any, order: Any, axis: int) -> Any:
    """Element i along `axis` of the result is element `order[i]` of `x`; `order` is a permutation for each row."""
    ndim = aval_of(x).ndim
    rows = tuple(d for d in range(ndim) if d != axis)
    return gather(
        x,
        expand_dims(order, (ndim,)),
        GatherDimensionNumbers((), (axis,), (axis,), rows, rows),
        (1,) * ndim,
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def one_of_each_row(x: Any, index: Any) -> Any:
    """The element at `index` of each row of `x`, whose last axis the result and `index` do not have."""
    last = aval_of(x).ndim - 1
    rows = tuple(range(last))
    return gather(
        x,
        expand_dims(index, (last,)),
        GatherDimensionNumbers((), (last,), (last,), rows, rows),
        (1,) * (last + 1),
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )
