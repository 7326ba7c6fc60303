"""Cells: places whose value a program reads and writes while it is traced; what a `Ref` is made of.

A cell belongs to the builder in which it was made (None: to the running program). There, writing it means remembering
another tracer: the jaxpr knows nothing of it. In a function that is traced inside, a loop's body for example, a write
raises `Touched`. The transformation that called the function catches it and traces the function again, with the cell's
value as one more argument and one more result. So the program stays pure, and every rewrite works as ever.
"""
from __future__ import annotations

from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.provenance import user_line
from xlamini.core.tracer import Builder, state


class Touched(TypeError):
    """A cell from outside was used in a function that does not take it as an argument."""

    def __init__(self, cell: Cell, builder: Builder):
        self.cell, self.builder = cell, builder
        super().__init__(
            f"a ref of type {cell.aval.str_short(short_dtypes=False)}, made outside of {builder.name or 'the function'}"
            f", is used inside at {user_line()}, where the transformation does not thread it; pass its value as an "
            "argument and return the new one"
        )


class Cell:
    """One value, of one type, that can be replaced."""

    __slots__ = ("__weakref__", "aval", "memo", "owner", "value")

    def __init__(self, value: Any, aval: ShapedArray):
        self.value, self.aval, self.owner = value, aval, state.builder
        self.memo: dict[Any, Any] = {}

    def read(self) -> Any:
        """The value; Touched in a function whose trace is kept for later calls, when there may be another."""
        for builder in self._builders_inside():
            if builder.kept:
                raise Touched(self, builder)
        return self.value

    def write(self, value: Any) -> None:
        """Replace the value; Touched in a function traced inside the one that the cell belongs to."""
        inside = self._builders_inside()
        if inside:
            raise Touched(self, inside[0])
        self.value = value

    def _builders_inside(self) -> list[Builder]:
        """The builders between the cell's own and the active one, outermost first."""
        found: list[Builder] = []
        builder = state.builder
        while builder is not None and builder is not self.owner:
            found.append(builder)
            builder = builder.parent
        return found[::-1]


class Holder:
    """What a user has of a cell: a `Ref`."""

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
