"""The elements of a ref that an equation is on, and whether they are in it."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ShapedArray
from xlamini.core.program.ref_parts import ArrayDim, Part, PartDim, has_arrays, shape_of
from xlamini.runtime import device_put_value
from xlamini.transforms.pallas.check.twins import host


class Outside(NamedTuple):
    """An index that is not in a ref: along which axis, of which size, and the first element that is not there."""

    axis: int
    size: int
    index: int

    def __str__(self) -> str:
        return f"index {self.index} along axis {self.axis}, which has {self.size} elements"


class ElementPlaces(NamedTuple):
    """Where the elements are: an index of NumPy, and their shape; `outside` if some are not in the ref."""

    index: Any
    shape: tuple[int, ...]
    outside: Outside | None = None
    missing: Any = None
    """The mask of the elements that are not there, if the part has a form."""


def elements(view: Any, shape: tuple[int, ...], operands: Sequence[Any]) -> ElementPlaces:
    """The elements of a ref of this shape that a view leads to."""
    values = [host(x) for x in operands]
    part = view.part(shape, [ShapedArray(x.shape, x.dtype) for x in values])
    if part is None:
        return _gathered(view, shape, operands)
    if has_arrays(part):
        return points(part, shape, values, None)
    return _rectangle(part, shape, values)


def points(part: Part, shape: tuple[int, ...], values: Sequence[np.ndarray], mask: np.ndarray | None) -> ElementPlaces:
    """The elements of a part that a mask leaves, in a row; without a mask all, in the part's shape."""
    grid = [np.broadcast_to(_along(part, d, values), shape_of(part)) for d in range(len(part))]
    grid = grid if mask is None else [axis[mask] for axis in grid]
    kept = shape_of(part) if mask is None else (int(mask.sum()),)
    outside = _first_outside(grid, shape)
    missing = None if outside is None else np.logical_or.reduce([_is_outside(i, n) for i, n in _axes(grid, shape)])
    return ElementPlaces(tuple(np.clip(i, 0, n - 1) for i, n in _axes(grid, shape)) or (...,), kept, outside, missing)


def _along(part: Part, d: int, values: Sequence[np.ndarray]) -> np.ndarray:
    """The indices along one dimension of the ref, in the shape of the part but for sizes of 1."""
    dim, rank = part[d], len(shape_of(part))
    if isinstance(dim, ArrayDim):
        first = next(i for i, other in enumerate(part) if isinstance(other, ArrayDim))
        array = np.broadcast_to(values[dim.operand], dim.shape)
        return array.reshape(*array.shape, *[1] * (rank - len(shape_of(part[:first])) - array.ndim))
    row = _row(dim, values)
    return row[0] if dim.squeezed else row.reshape(*row.shape, *[1] * (rank - len(shape_of(part[:d])) - 1))


def _axes(grid: Sequence[np.ndarray], shape: Sequence[int]) -> list[tuple[np.ndarray, int]]:
    return list(zip(grid, shape, strict=True))


def _is_outside(indices: np.ndarray, size: int) -> np.ndarray:
    return (indices < 0) | (indices >= size)


def _first_outside(rows: Sequence[np.ndarray], shape: Sequence[int]) -> Outside | None:
    return next((o for i, (r, n) in enumerate(_axes(rows, shape)) if (o := _outside(i, n, r)) is not None), None)


def _rectangle(part: Sequence[PartDim], shape: tuple[int, ...], values: Sequence[np.ndarray]) -> ElementPlaces:
    rows = [_row(dim, values) for dim in part]
    if _first_outside(rows, shape) is not None:
        return points(tuple(part), shape, values, None)
    slices = [int(r[0]) if d.squeezed else _slice(r, d) for r, d in zip(rows, part, strict=True)]
    return ElementPlaces((..., *slices), shape_of(tuple(part)))


def _row(dim: PartDim, values: Sequence[np.ndarray]) -> np.ndarray:
    """The indices along one dimension."""
    start = dim.start.number + sum(factor * int(values[i]) for factor, i in dim.start.terms)
    return start + dim.stride * np.arange(dim.size)


def _slice(row: np.ndarray, dim: PartDim) -> slice:
    return slice(int(row[0]), int(row[-1]) + 1, dim.stride) if row.size else slice(0, 0)


def _outside(axis: int, size: int, row: np.ndarray) -> Outside | None:
    bad = row[_is_outside(row, size)]
    return Outside(axis, size, int(bad.flat[0])) if bad.size else None


def _gathered(view: Any, shape: tuple[int, ...], operands: Sequence[Any]) -> ElementPlaces:
    """By reading the elements' numbers through the view."""
    numbers = device_put_value(np.arange(math.prod(shape), dtype=np.int32).reshape(shape))
    for step in view.steps_at([host(x) for x in operands]):
        outside = _step_outside(step, numbers.shape)
        if outside is not None:
            return ElementPlaces((), (), outside)
        numbers = step.read(numbers)
    found = host(numbers)
    return ElementPlaces(np.unravel_index(found, shape) if shape else (...,), found.shape)


def _step_outside(step: Any, shape: tuple[int, ...]) -> Outside | None:
    """What is outside in an index with integer arrays."""
    if not hasattr(step, "index"):
        return None
    items = step.index if type(step.index) is tuple else (step.index,)
    for axis, item in _with_axes(items, len(shape)):
        bad = _outside(axis, shape[axis], _indices(item, shape[axis]))
        if bad is not None:
            return bad
    return None


def _indices(item: Any, size: int) -> np.ndarray:
    """The indices that one item of an index says; none for a slice that Python cuts off."""
    if isinstance(item, int):
        return np.asarray([item + size if item < 0 else item])
    if isinstance(item, np.ndarray | np.generic):
        return np.asarray(item).reshape(-1)
    return int(item.start) + item.stride * np.arange(item.size) if hasattr(item, "size") else np.arange(0)


def _with_axes(items: Sequence[Any], ndim: int) -> list[tuple[int, Any]]:
    """The items of an index with their axes."""
    indexed = [item for item in items if item is not None]
    at = next((i for i, item in enumerate(indexed) if item is ...), len(indexed))
    front, back = indexed[:at], indexed[at + 1 :]
    return [*enumerate(front), *enumerate(back, ndim - len(back))]
