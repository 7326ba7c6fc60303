"""Moving batch dimensions about, for `batch` rules and for vmap itself."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Dims, Values
from xlamini.primitives.shape import broadcast, moveaxis


def move_batch_dim(x: Any, size: int, source: int | None, destination: int) -> Any:
    """Bring a value's batch dimension to `destination`; a value without one is repeated."""
    if source is not None:
        return moveaxis(x, source, destination)
    return moveaxis(broadcast(x, (size,)), 0, destination)


def with_batch_first(
    operands: Values, dims: Dims, size: int, marked: Sequence[bool] | None = None
) -> list[Any]:
    """Move the batch dimension to 0, in all operands or in those marked."""
    marks = [True] * len(dims) if marked is None else marked
    return [move_batch_dim(x, size, d, 0) if m else x for x, d, m in zip(operands, dims, marks, strict=True)]
