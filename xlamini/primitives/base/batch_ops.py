"""Moving batch dimensions about, for `batch` rules and for vmap itself."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Dims, Values, aval_of
from xlamini.core.program.hi_types import HiAval
from xlamini.primitives.shape.shape import broadcast, moveaxis


def move_batch_dim(x: Any, size: int, source: int | None, destination: int) -> Any:
    """Bring a value's batch dimension to `destination`; a value without one is repeated."""
    aval = aval_of(x)
    if type(aval) is HiAval:
        return _with_spec(x, aval, source, destination)
    if source is not None:
        return moveaxis(x, source, destination)
    return moveaxis(broadcast(x, (size,)), 0, destination)


def _with_spec(x: Any, aval: HiAval, source: Any, destination: Any) -> Any:
    """A value of a user's type, whose mapping spec cannot be changed."""
    if source is None:
        raise TypeError(f"vmap: a value of type {aval}, equal for all examples, cannot be repeated; use out_axes=None")
    found, due = aval.spec(source), aval.spec(destination)
    if found != due:
        raise TypeError(f"vmap: a value of type {aval} is mapped by {found!r}, but must be by {due!r}")
    return x


def with_batch_first(
    operands: Values, dims: Dims, size: int, marked: Sequence[bool] | None = None
) -> list[Any]:
    """Move the batch dimension to 0, in all operands or in those marked."""
    marks = [True] * len(dims) if marked is None else marked
    return [move_batch_dim(x, size, d, 0) if m else x for x, d, m in zip(operands, dims, marks, strict=True)]
