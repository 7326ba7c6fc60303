"""Moving a dimension into another one, and out of it: how groups and batches become features."""

from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.shape.shape import moveaxis, reshape


def merged_into(x: Any, source: int, target: int) -> Any:
    """Dimension `source` joined to the front of `target`, both as numbered now: index (source, target)."""
    if source == target:
        return x
    shape = aval_of(x).shape
    at = target - (source < target)
    moved = moveaxis(x, source, at)
    kept = [n for d, n in enumerate(shape) if d != source]
    kept[at] *= shape[source]
    return reshape(moved, kept)


def split_off(x: Any, dim: int, count: int) -> Any:
    """Dimension `dim` as two: `count` groups, then, one further, the elements of a group."""
    shape = aval_of(x).shape
    return reshape(x, (*shape[:dim], count, shape[dim] // count, *shape[dim + 1 :]))
