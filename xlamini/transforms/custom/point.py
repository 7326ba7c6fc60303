"""Where a call stands in a trace that knows numbers, so that Python in its rules may ask for them too."""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from xlamini.core.state import state
from xlamini.core.tracer import Tracer


class Point:
    """The operands of a call. It lives as long as the outermost trace.

    A rule has a weak reference, since programs that are kept keep their rules.
    """

    __slots__ = ("__weakref__", "operands")

    def __init__(self, operands: Sequence[Any]):
        self.operands = list(operands)


def numbers_known(operands: Sequence[Any]) -> bool:
    """Whether Python may ask for the numbers of these operands, as it may in a gradient outside of jit."""
    return all(type(x) is not Tracer or x.builder.known for x in operands)


def here(operands: Sequence[Any]) -> weakref.ref[Point] | None:
    """The point of a call with these operands; None if Python cannot ask for their numbers."""
    builder = state.builder
    if builder is None or not numbers_known(operands):
        return None
    while builder.parent is not None:
        builder = builder.parent
    point = Point(operands)
    builder.memo[point] = point
    return weakref.ref(point)


def values_at(point: weakref.ref[Point] | None) -> list[Any] | None:
    """The operands of a call, if their trace goes on."""
    found = None if point is None else point()
    return None if found is None else found.operands
