"""The part of a ref that the steps of a view lead to."""
from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from xlamini.core import Avals
from xlamini.core.program.ref_parts import ArrayDim, Part, PartDim, Start, has_arrays, whole
from xlamini.core.sizes.shapes import broadcast_shapes


class _NoPart(Exception):
    """A step leads to something else than a rectangle or points: another shape or order, two gathers."""


def part_of(steps: Sequence[Any], shape: Sequence[int], avals: Avals, hole: Any) -> Part | None:
    """The part that indices lead to, one after the other; None if it is no rectangle, and no points.

    `avals` are the types of the operands, which come where the indices have a `hole`.
    """
    part, numbers = whole(shape), iter(range(len(avals)))
    try:
        for step in steps:
            part = _indexed(part, _items(step), _Holes(hole, numbers, avals))
    except _NoPart:
        return None
    return part


@dataclasses.dataclass
class _Holes:
    hole: Any
    numbers: Iterator[int]
    avals: Avals

    def start(self, item: Any, size: int) -> Start | None:
        """The start that an index is, a number or a hole; None for other items."""
        if type(item) is int:
            return Start(item + size if item < 0 else item)
        if item is not self.hole:
            return None
        number = next(self.numbers)
        if self.avals[number].shape:
            raise _NoPart
        return Start(0, ((1, number),))

    def array(self, item: Any) -> int | None:
        """The number of the operand if the item is a hole for an array."""
        if item is not self.hole:
            return None
        number = next(self.numbers)
        if self.avals[number].shape:
            return number
        self.numbers = itertools.chain([number], self.numbers)
        return None


def _items(step: Any) -> tuple[Any, ...]:
    if not hasattr(step, "index"):
        raise _NoPart
    return step.index if type(step.index) is tuple else (step.index,)


def _indexed(part: Part, items: tuple[Any, ...], holes: _Holes) -> Part:
    """A part of a part."""
    if has_arrays(part):
        raise _NoPart
    dims: list[Any] = list(part)
    kept = [i for i, dim in enumerate(dims) if not dim.squeezed]
    filled = _filled(items, len(kept))
    for i, item in zip(kept, filled, strict=True):
        dims[i] = _item(dims[i], item, holes)
    found = tuple(dims)
    return _with_shape(found, holes.avals, filled) if has_arrays(found) else found


def _with_shape(dims: Sequence[Any], avals: Avals, items: Sequence[Any]) -> Part:
    """The dimensions, where those that arrays index know the shape of all these arrays together."""
    numbers = [i for i, item in enumerate(items) if not hasattr(item, "stop") and not hasattr(item, "stride")]
    if numbers != list(range(numbers[0], numbers[-1] + 1)):  # NumPy puts the arrays' dimensions first
        raise _NoPart
    shape = broadcast_shapes(*(avals[d.operand].shape for d in dims if isinstance(d, ArrayDim)))
    return tuple(d._replace(shape=shape) if isinstance(d, ArrayDim) else d for d in dims)


def _filled(items: tuple[Any, ...], count: int) -> list[Any]:
    """One item for each dimension, where an index may have `...` or end early."""
    if any(item is None for item in items):
        raise _NoPart
    at = next((i for i, item in enumerate(items) if item is ...), len(items))
    front, back = items[:at], items[at + 1 :]
    return [*front, *[slice(None)] * (count - len(front) - len(back)), *back]


def _item(dim: Any, item: Any, holes: _Holes) -> PartDim | ArrayDim:
    array = holes.array(item)
    if array is not None:
        if dim != PartDim(Start(0), dim.size):
            raise _NoPart
        return ArrayDim(array, ())
    start = holes.start(item, dim.size)
    if start is not None:
        return PartDim(dim.start.moved(start, dim.stride), 1, 1, True)
    if hasattr(item, "stop"):  # a slice of static numbers
        first, last, step = slice(item.start, item.stop, item.step).indices(dim.size)
        if step < 0:
            raise _NoPart
        return PartDim(dim.start.moved(Start(first), dim.stride), len(range(first, last, step)), dim.stride * step)
    if not hasattr(item, "stride"):
        raise _NoPart
    start = holes.start(item.start, dim.size) or Start(0)
    return PartDim(dim.start.moved(start, dim.stride), item.size, dim.stride * item.stride)
