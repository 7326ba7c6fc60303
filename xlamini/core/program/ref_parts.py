"""The part of a ref that an equation is on, as a rectangle: a start, a size and a stride in each dimension.

Where arrays index a dimension, the part is the points that they name.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Start(NamedTuple):
    """Where a part begins: a number, plus operands of the equation, each with a factor."""

    number: int
    terms: tuple[tuple[int, int], ...] = ()
    """Pairs of a factor and the number of an operand, among those of the view."""

    def moved(self, by: Start, stride: int) -> Start:
        """The start of a part that begins `by` elements, `stride` apart, from here."""
        terms = tuple((factor * stride, operand) for factor, operand in by.terms)
        return Start(self.number + stride * by.number, self.terms + terms)


class PartDim(NamedTuple):
    """One dimension of a part; a squeezed one, of one element, is no dimension of its value."""

    start: Start
    size: int
    stride: int = 1
    squeezed: bool = False


class ArrayDim(NamedTuple):
    """A dimension that an array of integers indexes: the operand of this number, among those of the view.

    Arrays in one index are broadcast to `shape`, whose dimensions the value has where the first of them stands.
    """

    operand: int
    shape: tuple[int, ...]


Part = tuple[PartDim | ArrayDim, ...]


def whole(shape: Sequence[int]) -> Part:
    """The part that is all of a ref."""
    return tuple(PartDim(Start(0), size) for size in shape)


def shape_of(part: Part) -> tuple[int, ...]:
    """The shape of the value of a part."""
    shape: list[int] = []
    arrays = False
    for dim in part:
        if isinstance(dim, ArrayDim):
            shape += () if arrays else dim.shape
            arrays = True
        elif not dim.squeezed:
            shape.append(dim.size)
    return tuple(shape)


def has_arrays(part: Part) -> bool:
    """Whether arrays index the ref, so that the part is no rectangle."""
    return any(isinstance(dim, ArrayDim) for dim in part)


def is_whole(part: Part, shape: Sequence[int]) -> bool:
    """Whether the part is all of a ref of this shape, in its shape."""
    return part == whole(shape)
