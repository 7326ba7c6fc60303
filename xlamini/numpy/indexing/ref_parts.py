"""The part of a ref that the steps of a view lead to."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from xlamini.core import Avals
from xlamini.core.program.ref_parts import Part, PartDim, Start, whole


class _NoRectangle(Exception):
    """A step leads to something else than a rectangle: a gather, another shape or order."""


def part_of(steps: Sequence[Any], shape: Sequence[int], avals: Avals, hole: Any) -> Part | None:
    """The part that indices lead to, one after the other; None if it is no rectangle.

    `avals` are the types of the operands, which come where the indices have a `hole`.
    """
    part, numbers = whole(shape), iter(range(len(avals)))
    try:
        for step in steps:
            part = _indexed(part, _items(step), _Holes(hole, numbers, avals))
    except _NoRectangle:
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
            raise _NoRectangle
        return Start(0, ((1, number),))


def _items(step: Any) -> tuple[Any, ...]:
    if not hasattr(step, "index"):
        raise _NoRectangle
    return step.index if type(step.index) is tuple else (step.index,)


def _indexed(part: Part, items: tuple[Any, ...], holes: _Holes) -> Part:
    """A part of a part."""
    kept = [i for i, dim in enumerate(part) if not dim.squeezed]
    dims = list(part)
    for i, item in zip(kept, _filled(items, len(kept)), strict=True):
        dims[i] = _item(dims[i], item, holes)
    return tuple(dims)


def _filled(items: tuple[Any, ...], count: int) -> list[Any]:
    """One item for each dimension, where an index may have `...` or end early."""
    if any(item is None for item in items):
        raise _NoRectangle
    at = next((i for i, item in enumerate(items) if item is ...), len(items))
    front, back = items[:at], items[at + 1 :]
    return [*front, *[slice(None)] * (count - len(front) - len(back)), *back]


def _item(dim: PartDim, item: Any, holes: _Holes) -> PartDim:
    start = holes.start(item, dim.size)
    if start is not None:
        return PartDim(dim.start.moved(start, dim.stride), 1, 1, True)
    if hasattr(item, "stop"):  # a slice of static numbers
        first, last, step = slice(item.start, item.stop, item.step).indices(dim.size)
        if step < 0:
            raise _NoRectangle
        return PartDim(dim.start.moved(Start(first), dim.stride), len(range(first, last, step)), dim.stride * step)
    if not hasattr(item, "stride"):
        raise _NoRectangle
    start = holes.start(item.start, dim.size) or Start(0)
    return PartDim(dim.start.moved(start, dim.stride), item.size, dim.stride * item.stride)
