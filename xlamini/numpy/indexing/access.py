"""A plan carried out on an array: as a box where it can be one, else as a gather or a scatter.

NumPy's rule for integer arrays: they broadcast against each other, and the resulting dimensions replace the arrays'
axes if those were neighbors, else they come first.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Shape, aval_of, enable_x64, literal
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.indexing.plan import Between, Entry, IndexPlan, IndexPoint, NewAxis, Points, Span, bound_leaves
from xlamini.primitives import add, broadcast_in_dim, broadcasted_iota, convert, mul
from xlamini.primitives.indexing.dynamic_slice import from_front
from xlamini.primitives.indexing.gather_numbers import GatherDimensionNumbers
from xlamini.primitives.shape.concatenate import concatenate


class ResultFrame(NamedTuple):
    """The relation between the elements read and the user's result.

    `shape` is the result's. `new` are its axes made by None, `reverse` those that run backwards.
    """

    shape: Shape
    new: Shape
    reverse: Shape

    @property
    def read_shape(self) -> Shape:
        """The result's shape without the new axes."""
        return tuple(n for d, n in enumerate(self.shape) if d not in self.new)

    @property
    def read_reverse(self) -> list[int]:
        """The axes that run backwards, counted without the new ones."""
        return [d - sum(n < d for n in self.new) for d in self.reverse]


class GatherWindows(NamedTuple):
    """A gather or scatter: the positions of its windows, and the frame of their elements."""

    indices: Any
    numbers: GatherDimensionNumbers
    sizes: Shape
    frame: ResultFrame


class _Part(NamedTuple):
    """Axes of the result that come from one entry, or from all integer arrays."""

    entry: Entry | None
    shape: Shape
    axis: int = -1


def windows(plan: IndexPlan, leaves: Sequence[Any], shape: Shape) -> GatherWindows:
    """The windows of a plan in an array of this shape, which has the inserted axes."""
    values = bound_leaves(plan.entries, leaves)
    together = _broadcast_shape(plan.entries, values)
    parts = list(_parts(plan.entries, together))
    frame = _frame(parts)
    indexed = [part for part in parts if not _is_window(part) and type(part.entry) is not NewAxis]
    places = tuple(n for part in indexed for n in part.shape)
    components = dict(_components(plan.entries, values, indexed, places, shape))
    return GatherWindows(_stacked(components, places), _numbers(plan, parts, components), _sizes(plan, shape), frame)


def frame_of(plan: IndexPlan) -> ResultFrame:
    """The frame of a plan without integer arrays."""
    return _frame(list(_parts(plan.entries, ())))


# --- the axes of the result


def _parts(entries: Sequence[Entry], together: Shape) -> Iterator[_Part]:
    """The result's axes in order, with those of the integer arrays, `together`, in their position."""
    advanced = [i for i, entry in enumerate(entries) if type(entry) in (IndexPoint, Points)]
    neighbours = bool(advanced) and advanced[-1] - advanced[0] + 1 == len(advanced)
    place = advanced[0] if neighbours else 0
    axis = 0
    for i, entry in enumerate(entries):
        if i == place and advanced:
            yield _Part(None, together)
        if type(entry) is NewAxis:
            yield _Part(entry, (1,))
        elif type(entry) is Span:
            yield _Part(entry, (entry.size,), axis)
        axis += type(entry) not in (NewAxis, Between)


def _frame(parts: Sequence[_Part]) -> ResultFrame:
    shape: list[int] = []
    new, reverse = [], []
    for part in parts:
        if type(part.entry) is NewAxis:
            new.append(len(shape))
        elif type(part.entry) is Span and part.entry.step == -1:
            reverse.append(len(shape))
        shape.extend(part.shape)
    return ResultFrame(tuple(shape), tuple(new), tuple(reverse))


def _is_window(part: _Part) -> bool:
    """True if a slice is read as one window rather than element by element."""
    return type(part.entry) is Span and abs(part.entry.step) == 1


def _broadcast_shape(entries: Sequence[Entry], values: Sequence[Any]) -> Shape:
    shapes = [aval_of(v).shape for e, v in zip(entries, values, strict=True) if type(e) is Points]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        found = " ".join(map(str, shapes))
        raise IndexError(f"shape mismatch: integer arrays of shapes {found} do not broadcast together") from None


# --- index vectors


def _components(
    entries: Sequence[Entry], values: Sequence[Any], indexed: Sequence[_Part], places: Shape, shape: Shape
) -> Iterator[tuple[int, Any]]:
    """The index components of each axis that is not read from its beginning, of the shape `places`."""
    dtype = _index_dtype(values)
    offsets = {part.axis: sum(len(p.shape) for p in indexed[:i]) for i, part in enumerate(indexed)}
    last = next((offsets[p.axis] + len(p.shape) for p in indexed if p.entry is None), 0)
    axis = 0
    for entry, value in zip(entries, values, strict=True):
        if isinstance(entry, IndexPoint | Points):
            counted = from_front(value, shape[axis]) if entry.wrap else value
            yield axis, _repeat_over_places(convert_index(counted, dtype), places, last)
        elif type(entry) is Span and abs(entry.step) != 1:
            first = from_front(value, shape[axis]) if entry.wrap else value
            yield axis, _repeat_over_places(_strided(entry, first, dtype), places, offsets[axis] + 1)
        elif type(entry) is Span and (entry.start is None or entry.start):
            first = from_front(value, shape[axis]) if entry.wrap else value
            yield axis, _repeat_over_places(convert_index(first, dtype), places, 0)
        axis += type(entry) not in (NewAxis, Between)


def _index_dtype(values: Sequence[Any]) -> np.dtype:
    arrays = [v for v in values if v is not None and type(v) is not int]
    wide = enable_x64.value and any(aval_of(v).dtype.itemsize > 4 for v in arrays)
    return np.dtype(np.int64 if wide else np.int32)


def convert_index(value: Any, dtype: np.dtype) -> Any:
    """An index of this dtype; a number as a literal."""
    return literal(value, dtype) if type(value) is int else convert(value, dtype)


def _strided(entry: Span, start: Any, dtype: np.dtype) -> Any:
    """The places of a slice with a step."""
    step = literal(entry.step, dtype)
    first = convert_index(start, dtype)
    if entry.step < 0:
        first = add(first, literal((entry.size - 1) * -entry.step, dtype))
    return add(mul(broadcasted_iota(dtype, (entry.size,), 0), step), first)


def _repeat_over_places(value: Any, places: Shape, last: int) -> Any:
    """A component repeated over all places, its dimensions ending before `last`; one of size 1 is for stacking."""
    rank = aval_of(value).ndim
    return broadcast_in_dim(value, (*places, 1), range(last - rank, last))


def _stacked(components: dict[int, Any], places: Shape) -> Any:
    if components:
        return concatenate(list(components.values()), len(places))
    return broadcasted_iota(np.int32, (*places, 0), len(places))


# --- dimension numbers


def _numbers(plan: IndexPlan, parts: Sequence[_Part], components: dict[int, Any]) -> GatherDimensionNumbers:
    offsets, position = [], 0
    for part in parts:
        if type(part.entry) is NewAxis:
            continue
        if _is_window(part):
            offsets.append(position)
        position += len(part.shape)
    windowed = {part.axis for part in parts if _is_window(part)}
    collapsed = tuple(axis for axis in range(len(plan.axes())) if axis not in windowed)
    return GatherDimensionNumbers(tuple(offsets), collapsed, tuple(components))


def _sizes(plan: IndexPlan, shape: Shape) -> Shape:
    """The size of a window in each axis of the array."""
    return tuple(e.size if type(e) is Span and abs(e.step) == 1 else 1 for e in plan.axes())
