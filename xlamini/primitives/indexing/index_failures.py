"""Indices out of bounds, as failures that checked programs look for."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Literal, Shape, ShapedArray
from xlamini.core.program.checks import Failure
from xlamini.primitives.elementwise.comparison import ne
from xlamini.primitives.indexing.gather_numbers import clamped
from xlamini.primitives.shape.stack import stack


def vectors_outside(operand: ShapedArray, indices: Any, places: Sequence[int], window: Shape) -> list[Failure]:
    """The failure of index vectors, along the last dimension, whose window does not lie in the operand."""
    if not places:
        return []
    bad = ne(clamped(operand, indices, places, window), indices)
    return [Failure("index", bad, _message(operand.shape, places), (indices,))]


def starts_outside(operand: ShapedArray, starts: Sequence[Any], window: Shape) -> list[Failure]:
    """The failure of start indices, one scalar for each dimension; numbers in the program need no look."""
    places = [d for d, start in enumerate(starts) if not _is_inside(start, operand.shape[d] - window[d])]
    if not places:
        return []
    return vectors_outside(operand, stack([starts[d] for d in places]), places, window)


def _is_inside(start: Any, last: int) -> bool:
    return type(start) is Literal and 0 <= start.val <= last


def _message(shape: Shape, places: Sequence[int]) -> Any:
    def message(index: Sequence[int], payload: Sequence[Any]) -> str:
        axis = places[index[-1]]
        return (
            f"out-of-bounds indexing for array of shape {shape}: index {payload[0]} is out of bounds for axis {axis} "
            f"with size {shape[axis]}."
        )

    return message
