"""Mutable cells for refs: a value that a program reads and writes while it is traced.

A cell belongs to the builder that was active when it was made (None: eager execution). There, a write only replaces the
tracer that the cell holds, so the jaxpr stays pure. In an inner trace, such as a loop's body, a write raises
`RefEscaped`. The transformation catches it and traces the function again, with the cell's value as an extra argument
and an extra result.
"""
from __future__ import annotations

from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.frames import user_line
from xlamini.core.state import state
from xlamini.core.tracer import Builder


class RefEscaped(TypeError):
    """A cell was used in an inner trace that does not take its value as an argument."""

    def __init__(self, cell: Cell, builder: Builder):
        self.cell, self.builder = cell, builder
        super().__init__(
            f"a ref of type {cell.aval.str_short(short_dtypes=False)}, made outside of {builder.name or 'the function'}"
            f", is used inside at {user_line()}, where the transformation does not thread it; pass its value as an "
            "argument and return the new one"
        )


class Cell:
    """A mutable value of a fixed type."""

    __slots__ = ("__weakref__", "aval", "memo", "owner", "value")

    def __init__(self, value: Any, aval: ShapedArray):
        self.value, self.aval, self.owner = value, aval, state.builder
        self.memo: dict[Any, Any] = {}

    def read(self) -> Any:
        """The value; RefEscaped in a trace that later calls reuse, because the value may have changed by then."""
        for builder in self._builders_inside():
            if builder.kept:
                raise RefEscaped(self, builder)
        return self.value

    def write(self, value: Any) -> None:
        """Replace the value; RefEscaped in a trace inside the one that the cell belongs to."""
        inside = self._builders_inside()
        if inside:
            raise RefEscaped(self, inside[0])
        self.value = value

    def _builders_inside(self) -> list[Builder]:
        """The builders from just inside the cell's own to the active one, outermost first."""
        found: list[Builder] = []
        builder = state.builder
        while builder is not None and builder is not self.owner:
            found.append(builder)
            builder = builder.parent
        return found[::-1]


class Holder:
    """Base of `Ref`, the user's handle of a cell."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell):
        self._cell = cell

    @property
    def cell(self) -> Cell:
        """The cell."""
        return self._cell


def is_holder(x: Any) -> bool:
    """Whether this is a ref."""
    return isinstance(x, Holder)
