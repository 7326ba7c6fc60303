"""Elements in another order: a gather with one place for each element."""

from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xlamini.primitives.shape import expand_dims


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
