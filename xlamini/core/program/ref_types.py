"""Refs in programs: the type of a variable that is a ref, and the equations that read and write it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from xlamini.core import hooks
from xlamini.core.program.avals import Avals, Params, ShapedArray
from xlamini.core.program.effects import Effect, Effects
from xlamini.core.program.primitive import Primitive


class AbstractRef(ShapedArray):
    """The type of a ref, as `typeof` gives it, and of a variable that is one; it prints as `Ref{float32[3]}`.

    >>> xlamini.typeof(xlamini.new_ref(jnp.zeros(3)))
    Ref{float32[3]}
    """

    __slots__ = ("inner_aval", "kind")
    _of_inner: ClassVar[dict[tuple, AbstractRef]] = {}

    inner_aval: ShapedArray
    kind: Any

    def __new__(cls, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None) -> AbstractRef:
        if not isinstance(inner_aval, ShapedArray):
            raise TypeError(
                f"AbstractRef: inner_aval must be a ShapedArray, got {inner_aval!r}; write xlamini.typeof(x)"
            )
        key = inner_aval, memory_space, kind
        known = cls._of_inner.get(key)
        return known if known is not None else cls._of_inner.setdefault(key, cls._made(inner_aval, kind))

    @classmethod
    def _made(cls, inner: ShapedArray, kind: Any) -> AbstractRef:
        self = object.__new__(cls)
        for name in ShapedArray.__slots__:
            setattr(self, name, getattr(inner, name))
        self.inner_aval, self.kind = inner, kind
        return self

    def __reduce__(self) -> Any:
        return AbstractRef, (self.inner_aval, None, self.kind)

    def update(self, **changes: Any) -> AbstractRef:
        """The type of a ref to values of another type."""
        return AbstractRef(self.inner_aval.update(**changes), None, self.kind)

    def str_short(self, short_dtypes: bool = True, mesh_axis_types: bool = False) -> str:
        return f"Ref{self._where()}{{{self.inner_aval.str_short(short_dtypes, mesh_axis_types)}}}"

    def __repr__(self) -> str:
        return f"Ref{self._where()}{{{self.inner_aval.str_long()}}}"

    def _where(self) -> str:
        return f"<{self.kind}>" if self.kind else ""


class RefVariable:
    """What a cell holds in the trace of a program that takes the ref itself: the variable of type `Ref{…}`."""

    __slots__ = ("aval", "tracer")
    aval: Any
    tracer: Any

    def __init__(self, tracer: Any):
        self.tracer, self.aval = tracer, tracer.aval.inner_aval

    def read(self) -> Any:
        """The value, by an equation."""
        return hooks.read_ref(self.tracer)

    def write(self, value: Any) -> None:
        """Write the value, by an equation."""
        hooks.write_ref(self.tracer, value)


READ, WRITE = Effect("read"), Effect("write")


class RefPrimitive(Primitive):
    """An equation on the ref that is its first operand; its rule `discharge` says what it does to the value."""

    writes = False
    """Whether it writes the ref; if not, it reads it."""
    multiple_results = True
    traits = 0
    lacks: Mapping[str, str] = dict.fromkeys(("transpose", "batch"), "a program with refs is discharged first")

    def is_linear(self, params: Params) -> bool:
        """Whether the same equation on the refs of tangents, with tangents as values, is its forward mode."""
        return True

    def effects(self, avals: Avals, params: Params) -> Effects:
        return frozenset({WRITE if self.writes else READ})

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        """The equation as a program shows it, of its typed results and the names of its operands."""
        self._missing("notation", "(self, outs, names, params) -> str")
