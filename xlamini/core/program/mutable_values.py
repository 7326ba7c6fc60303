"""Values of users' mutable types (`hijax.MutableHiType`): objects of a user's class whose arrays a program replaces.

While a program is traced, such a value is the user's object itself, not a tracer; its arrays are tracers. A cell goes
with each object, so the transformations thread what it holds like the value of a ref (ref_cells.py): as `Contents`, a
pytree node of arrays, which the methods of the type read from the object and write to it.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from xlamini.core.program.avals import aval_of, types_of_values
from xlamini.core.program.hi_types import as_aval
from xlamini.core.program.ref_cells import Cell, Holder, is_holder
from xlamini.core.pytree import register_pytree_node
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder


@dataclass(frozen=True, eq=False)
class TypeAndState:
    """A mutable type, and the user's description of what a value holds: its quasi-dynamic data."""

    ty: Any
    state: Any

    @property
    def _key(self) -> Any:
        return self.ty, self.state.normalize() if hasattr(self.state, "normalize") else self.state

    def __eq__(self, other: object) -> bool:
        return type(other) is TypeAndState and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)


class Contents:
    """The arrays that a value holds, with its type and state."""

    __slots__ = ("arrays", "described")
    arrays: Sequence[Any]
    described: TypeAndState

    def __init__(self, described: TypeAndState, arrays: Sequence[Any]):
        self.described, self.arrays = described, arrays

    @classmethod
    def of(cls, x: Any) -> Contents:
        """What the user's object holds now."""
        described = TypeAndState(type_of(x), state_of(x))
        return cls(described, list(described.ty.read_loval(described.state, x)))

    def made(self) -> Any:
        """A new object of the user's class that holds this; TypeError for a part of it, such as a slice of a batch."""
        due, found = map(_shapes, (self.described.ty.lo_ty_qdd(self.described.state), map(aval_of, self.arrays)))
        if due != found:
            raise TypeError(
                f"a value of the mutable type {self.described.ty} is taken whole, not mapped, sliced or sharded: its "
                f"arrays are {due}, not {found}; map over what it holds, and write the results to it"
            )
        return self.described.ty.new_from_loval(self.described.state, *self.arrays)

    def put_into(self, x: Any) -> None:
        """Let the user's object hold this."""
        self.described.ty.update_from_loval(self.described.state, x, *self.arrays)


def _shapes(types: Iterable[Any]) -> str:
    return f"[{', '.join(f'{as_aval(ty).dtype}{list(as_aval(ty).shape)}' for ty in types)}]"


register_pytree_node(
    Contents,
    lambda contents: (tuple(contents.arrays), contents.described),
    lambda described, arrays: Contents(described, arrays),
)


def type_of(x: Any) -> Any:
    """The mutable type of a value, as the user writes it."""
    return types_of_values[type(x)].ty(x)


def state_of(x: Any) -> Any:
    """What is known of the value now, by its method `cur_qdd`."""
    return x.cur_qdd()


class MutableCell(Cell):
    """The cell of a user's object. It holds what the object holds."""

    __slots__ = ("holder", "is_used")
    holder: Any
    is_used: bool
    owner: Any
    passed_to: str | None

    reading = "what it holds"

    @property
    def ty(self) -> Any:
        return type_of(self.holder)

    @property
    def noun(self) -> str:
        return f"a value of the mutable type {self.ty}"

    def __init__(self, holder: Any, owner: Builder | None):
        self.holder, self.owner, self.passed_to, self.is_used = holder, owner, None, False

    @property
    def value(self) -> Contents:  # type: ignore[override]
        with self._used_here():
            return Contents.of(self.holder)

    @value.setter
    def value(self, new: Contents) -> None:
        with self._used_here():
            new.put_into(self.holder)

    @contextmanager
    def _used_here(self) -> Iterator[None]:
        """A context manager in which the primitives of the user's methods may use the object."""
        owner, is_used, self.owner = self.owner, self.is_used, state.builder
        try:
            yield
        finally:
            self.owner, self.is_used = owner, is_used

    def check_threaded(self) -> None:
        super().check_threaded()
        self.is_used = True

    def check_was_used(self, name: str) -> None:
        """TypeError if a trace that threads the cell did not use it: each trace makes another object."""
        if not self.is_used:
            raise TypeError(
                f"{name} makes {self.noun} without a primitive, so it is not known to be its own; make such values "
                "with a HiPrimitive whose abstract_eval returns an AvalQDD"
            )


_cells: WeakValueDictionary[int, MutableCell] = WeakValueDictionary()
"""The cells by the identity of their objects, each of which its cell keeps alive."""


def cell_of(x: Any) -> Cell:
    """The cell of a ref, a box, or a user's object; an object without one is from outside of all traces."""
    if isinstance(x, Holder):
        return x.cell
    return _cells.get(id(x)) or _cells.setdefault(id(x), MutableCell(x, None))


def first_holder(leaves: Sequence[Any]) -> Cell:
    """The cell of the first ref, box or user's object among these leaves, for errors."""
    return next(cell_of(x) for x in leaves if is_holder(x))


def owned(x: Any) -> Any:
    """A user's object that was made here: it belongs to the active trace."""
    cell = cell_of(x)
    cell.owner = state.builder
    if state.builder is not None:
        state.builder.memo[cell] = cell  # as long as the trace is going on
    return x


def holder_of(kind: type, value: Any) -> Any:
    """A new ref, box or user's object that holds the value."""
    return kind.of_value(value) if issubclass(kind, Holder) else owned(value.made())
