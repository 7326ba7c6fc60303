"""HiPrimitive: a primitive on values of users' types, by the methods of a class and with params at each call."""
from __future__ import annotations

from collections.abc import Set
from typing import Any

from xlamini.core import Avals, ShapedArray, Values
from xlamini.core.program.effects import Effects
from xlamini.core.program.hi_types import as_aval, as_written, is_mutable_value
from xlamini.core.program.mutable_values import owned
from xlamini.core.program.ref_cells import is_holder
from xlamini.core.tracing.state import state
from xlamini.experimental.hijax.mutable_types import current_type, is_mutable
from xlamini.extend.primitive import Primitive
from xlamini.extend.rules import as_values
from xlamini.staging.trace.typeof import typeof


class HiPrimitive(Primitive):
    """A primitive, `HiPrimitive("name")`, whose class says what it does; `p.bind(*operands, **params)` applies it.

    A subclass writes `abstract_eval`, from the types of the operands to that of the result (with `multiple_results` a
    list) and a set of effects; `to_lojax`, what it computes, by other operations on arrays and values; and for
    derivatives `jvp` and `transpose`, as in docs/extending.md. It needs no lowering. JAX has no such class since 0.12;
    a new program derives from `HiPrim`.

    >>> class Scale(HiPrimitive):
    ...     def abstract_eval(self, x, *, factor):
    ...         return x, set()
    ...     def to_lojax(self, x, *, factor):
    ...         return x * factor
    ...     def jvp(self, primals, tangents, *, factor):
    ...         return self.bind(*primals, factor=factor), self.bind(*tangents, factor=factor)
    >>> scale_p = Scale("scale")
    >>> scale_p.bind(2.0, factor=3.0), xlamini.jvp(lambda x: scale_p.bind(x, factor=3.0), (2.0,), (1.0,))
    (6.0, (Array(6., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True)))
    >>> print(xlamini.make_jaxpr(lambda x: scale_p.bind(x, factor=3.0))(2.0))
    { lambda ; a:f32[]. let b:f32[] = scale[factor=3.0] a in (b,) }
    """

    def __init__(self, name: str):
        super().__init__(name)

    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Whether operands or results are of users' types; it makes no difference here."""
        return True

    def is_effectful(self, params: dict[str, Any]) -> bool:
        """Whether it has effects besides those that `abstract_eval` returns."""
        return False

    def abstract_eval(self, *arg_avals: Any, **params: Any) -> tuple[Any, Set[Any]]:
        """The type of the result, and effects."""
        self._missing("abstract_eval", "(self, *arg_avals, **params) -> (aval, effects)")

    def to_lojax(self, *operands: Any, **params: Any) -> Any:
        """The result, by other operations."""
        self._missing("to_lojax", "(self, *operands, **params) -> result")

    def shape_rule(self, *avals: ShapedArray, **params: Any) -> Any:
        found, _ = self.abstract_eval(*map(as_written, avals), **params)
        return list(map(as_aval, found)) if self.multiple_results else as_aval(found)

    def effects(self, avals: Avals, params: dict[str, Any]) -> Effects:
        return frozenset(self.abstract_eval(*map(as_written, avals), **params)[1])

    def expand(self, *operands: Any, **params: Any) -> Any:
        return self.to_lojax(*as_values(operands), **params)

    def bind(self, *operands: Values, **params: Any) -> Any:
        if state.builder is None:
            return self.to_lojax(*operands, **params)
        if any(map(is_holder, operands)) or self._makes_mutable(operands, params):
            return self._on_mutable(operands, params)
        return super().bind(*operands, **params)

    def _makes_mutable(self, operands: Values, params: dict[str, Any]) -> bool:
        found, _ = self.abstract_eval(*map(typeof, operands), **params)
        return any(map(is_mutable, found)) if self.multiple_results else is_mutable(found)

    def _on_mutable(self, operands: Values, params: dict[str, Any]) -> Any:
        """The result, computed while the program is traced: of mutable values only their arrays are in the program."""
        types = [current_type(x) if is_mutable_value(x) else typeof(x) for x in operands]
        self.abstract_eval(*types, **params)
        found = self.to_lojax(*operands, **params)
        for x in found if self.multiple_results else [found]:
            if is_mutable_value(x):
                owned(x)
        return found
