"""Mutable cells for refs: a value that a program reads and writes while it is traced.

A cell belongs to the builder that was active when it was made (None: eager execution). There, a write only replaces the
tracer that the cell holds, so the jaxpr stays pure. In an inner trace, such as a loop's body, a write raises
`RefEscaped`. The transformation catches it and traces the function again, with the cell's value as an extra argument
and an extra result.

A cell that is a variable of the program is read and written by equations, in the bodies of loops and branches and in
nested calls too: these capture the variable (core/tracing/body.py).
"""
from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn

from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.errors.frames import user_line
from xlamini.core.program.avals import ShapedArray, aval_of, types_of_values
from xlamini.core.program.hi_types import is_mutable_value
from xlamini.core.program.ref_types import AbstractRef, RefVariable
from xlamini.core.pytree import flatten, flatten_from_user, register_pytree_node, unflatten
from xlamini.core.tracing.body import BodyBuilder
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder, active


class RefEscaped(TypeError):
    """A cell was used in an inner trace that does not take its value as an argument."""

    builder: Builder
    cell: Cell

    def __init__(self, cell: Cell, builder: Builder):
        self.cell, self.builder = cell, builder
        super().__init__(
            f"{cell.noun}, made outside of {builder.name or 'the function'}, is used inside at {user_line()}, where "
            "the transformation does not thread it; pass its value as an argument and return the new one"
        )


READ: Any = object()
"""The entry in a builder's memo that says that the value of a ref from outside was read."""
FREED: Any = object()
"""The value of a cell whose memory was released."""
_LONGEST_WAIT = 60
"""Seconds."""


class Taken:
    """What a cell holds while a program that replaces its value is started, for which other threads wait."""


class Cell:
    """A mutable value of a fixed type. While a program is traced it may be a variable of that, of the type `Ref{…}`."""

    __slots__ = ("__weakref__", "aval", "owner", "passed_to", "value")
    aval: ShapedArray
    owner: Any
    value: Any

    def __init__(self, value: Any, aval: ShapedArray):
        self.value, self.aval, self.owner = value, aval, state.builder
        self.passed_to: str | None = None
        """The function that is being called with this ref as an argument."""

    @property
    def ty(self) -> Any:
        """The type of the holder, as `typeof` gives it."""
        return AbstractRef(self.aval)

    reading = "ref[...]"
    """How the value is read, for errors."""

    @property
    def noun(self) -> str:
        """What it is, for errors."""
        return f"a ref of type {self.aval.str_short(short_dtypes=False)}"

    def read(self) -> Any:
        """The value; RefEscaped in a trace that later calls reuse, because the value may have changed by then."""
        home, outside = self._home()
        for builder in outside:
            if builder.kept:
                raise RefEscaped(self, builder)
            builder.memo[READ] = True
        value = self.value
        if type(value) is Taken:
            value = self._returned()
        if value is FREED:
            raise ValueError(f"a ref of type {AbstractRef(self.aval)} is used after free_ref; free it later")
        if isinstance(value, RefVariable):
            with active(home):
                return value.read()
        return value

    def _returned(self) -> Any:
        """The value, once the thread that starts a program with it has put it back."""
        end = time.monotonic() + _LONGEST_WAIT
        while type(value := self.value) is Taken:
            if time.monotonic() > end:
                raise RuntimeError(
                    f"{self.noun} is read while a call that writes it has not returned; read it before the call, or "
                    "pass its value to the Python function that needs it"
                )
            time.sleep(0)
        return value

    def last(self) -> Any:
        """What it holds at the end of the trace."""
        return self.value if isinstance(self.value, RefVariable) else self.read()

    def variable(self) -> Any:
        """The tracer of type `Ref{…}` that the active trace can read and write; None if it cannot, or holds a value."""
        value = self.value
        return value.tracer if isinstance(value, RefVariable) and self._home()[0] is state.builder else None

    def write(self, value: Any) -> None:
        """Replace the value; RefEscaped in a trace inside the one that the cell belongs to."""
        self.check_threaded()
        if isinstance(self.value, RefVariable) and value is not FREED:
            self.value.write(value)
        else:
            self.value = value

    def check_threaded(self) -> None:
        """RefEscaped in a trace inside the one that the cell belongs to, unless it is a variable of that too."""
        outside = self._home()[1]
        if outside:
            raise RefEscaped(self, outside[0])

    def check_was_used(self, name: str) -> None:
        """Raise an error if the trace of `name`, which threads the cell, did not use it and so never will."""

    def _check_not_passed(self) -> None:
        if self.passed_to is not None:
            raise ValueError(
                f"when tracing {self.passed_to}, a mutable array reference of type {self.ty} was both "
                f"closed over, at {user_line()}, and passed as an argument; use the argument in the function"
            )

    def _home(self) -> tuple[Builder | None, list[Builder]]:
        """The innermost builder that has the cell, and those from just inside of it to the active one.

        It is the cell's own, but for a variable, which those inside have too, up to the first that takes no refs.
        """
        inside = self._builders_inside()
        if inside:
            self._check_not_passed()
        is_variable = type(self) is Cell and isinstance(self.value, RefVariable)
        bodies = list(takewhile(lambda b: isinstance(b, BodyBuilder), inside)) if is_variable else []
        return (bodies[-1] if bodies else self.owner), inside[len(bodies) :]

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

    @api_boundary
    def __init__(self, cell: Cell):
        if not isinstance(cell, Cell):
            raise TypeError(f"Ref: a ref is made from a value by xlamini.new_ref(x), not from {type(cell).__name__}")
        self._cell = cell

    @classmethod
    def of_value(cls, value: Any) -> Holder:
        """A new one that holds the value."""
        return cls(Cell(value, aval_of(value)))

    @property
    def cell(self) -> Cell:
        """The cell."""
        return self._cell

    @property
    def aval(self) -> NoReturn:
        """A TypeError, as whatever asks a value for its aval is about to compute with it."""
        self.__array__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            f"a ref of type {self._cell.ty} is used where an array is expected, at {user_line()}; read its value with "
            f"{self._cell.reading}"
        )


class _ClosedOver:
    """A pytree node without leaves in place of a ref."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any):
        self.ref = ref


register_pytree_node(_ClosedOver, lambda node: ((), node.ref), lambda ref, _: ref)


def flatten_call(tree: Any) -> tuple[list[Any], Any]:
    """The leaves and the treedef of a call's arguments, in which a ref is no leaf: it is passed on as it is.

    The function that is called uses it like a ref that it closes over.
    """
    leaves, treedef = flatten_from_user(tree)
    if not any(map(is_holder, leaves)):
        return leaves, treedef
    return flatten(unflatten(treedef, [_ClosedOver(x) if is_holder(x) else x for x in leaves]))


class passed_to:
    """A context manager for the call of a function with these cells: inside of it they must not be closed over."""

    __slots__ = ("_before", "_cells", "_name")

    def __init__(self, name: str, cells: Sequence[Cell]):
        self._name, self._cells = name, cells

    def __enter__(self) -> None:
        self._before = [cell.passed_to for cell in self._cells]
        for cell in self._cells:
            cell.passed_to = self._name

    def __exit__(self, *error: object) -> None:
        for cell, outer in zip(self._cells, self._before, strict=True):
            cell.passed_to = outer


def is_holder(x: Any) -> bool:
    """Whether this is a ref, a box, or a value of a user's mutable type."""
    return isinstance(x, Holder) or (type(x) in types_of_values and is_mutable_value(x))
