"""What NumPy and Python say of shapes and slices, for sizes that may be symbolic."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.sizes.expression import SymbolicSize, as_size, is_symbolic_shape, max_size, min_size


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast; ValueError if they do not.

    A symbolic size is no 1, so it fits 1 and itself alone.
    """
    if not any(map(is_symbolic_shape, shapes)):
        return np.broadcast_shapes(*map(tuple, shapes))
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_common_size(sizes, shapes) for sizes in zip(*padded, strict=True))


def _common_size(sizes: Sequence[int], shapes: Sequence[Sequence[int]]) -> int:
    wide = [size for size in sizes if type(size) is SymbolicSize or size != 1]
    if any(size != wide[0] for size in wide[1:]):
        raise ValueError(f"shape mismatch: the shapes {', '.join(map(str, shapes))} do not broadcast")
    return wide[0] if wide else 1


def largest(shape: Sequence[int]) -> int:
    """The largest number among sizes, 0 without one; symbolic ones count as small enough for any index (`MOST`)."""
    return max((size for size in shape if type(size) is not SymbolicSize), default=0)


def span(item: slice, size: int) -> tuple[int, int, int]:
    """The first place, the number of elements and the step of a slice of an axis of this size.

    TypeError for a bound that is no size.
    """
    bounds = item.start, item.stop
    if not is_symbolic_shape((*bounds, size)):
        start, stop, step = item.indices(size)
        return start, len(range(start, stop, step)), step
    step = 1 if item.step is None else operator.index(item.step)
    if not step:
        raise ValueError("slice step cannot be zero")
    least, greatest = (0, size) if step > 0 else (-1, size - 1)
    ends = (least, greatest) if step > 0 else (greatest, least)
    start, stop = (
        end if bound is None else _clipped(as_size(bound), size, least, greatest)
        for bound, end in zip(bounds, ends, strict=True)
    )
    return start, count_between(start, stop, step), step


def count_between(start: int, stop: int, step: int) -> int:
    """The number of elements of `range(start, stop, step)`."""
    if not is_symbolic_shape((start, stop)):
        return len(range(start, stop, step))
    distance = stop - start if step > 0 else start - stop
    return max_size(-(-distance // abs(step)), 0)


def _clipped(bound: int, size: int, least: int, greatest: int) -> int:
    """A bound of a slice as a place, counted from the end if it is negative."""
    place: Any = bound + size if bound < 0 else bound
    return max_size(min_size(place, greatest), least)
