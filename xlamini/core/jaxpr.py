"""The language: variables, literals, equations, jaxprs.

A jaxpr is a straight list of equations over typed variables. It is never changed after its builder finished it, so
results of rewrites are memoised on it (`memo`) and live exactly as long as it does.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, final

from xlamini.core.avals import ShapedArray
from xlamini.core.memo import OwnedMemo

if TYPE_CHECKING:
    from xlamini.core.equation_kind import EquationKind
    from xlamini.core.primitive import Primitive
    from xlamini.core.provenance import Provenance

R = TypeVar("R")

Effects = frozenset
no_effects: Effects = frozenset()

rewrites = OwnedMemo("jaxpr: rewrites and facts", None, "memo", counted=True)
"""On each jaxpr: what `once`, `rewrite` and the keys of structure.py have made of it."""


@final
class Var:
    """A variable: assigned once, compared by identity."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


@final
class Literal:
    """A scalar written into the program."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val, self.aval = val, aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    weak_type = property(lambda self: self.aval.weak_type)
    ndim = property(lambda self: self.aval.ndim)

    def __repr__(self) -> str:
        return f"Literal({self.val}:{self.aval.str_short()})"


Atom = Var | Literal


class Equation:
    """`outvars = primitive[params] invars`, with where it came from and its number in its jaxpr.

    `kind` is what it shares with all equations of its kind in all programs (equation_kind.py), or None.
    """

    __slots__ = ("effects", "id", "invars", "kind", "outvars", "params", "primitive", "provenance")

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: dict[str, Any],
        effects: Effects,
        provenance: Provenance,
        id: int,
        kind: EquationKind | None = None,
    ):
        self.primitive, self.invars, self.outvars = primitive, invars, outvars
        self.params, self.effects, self.kind = params, effects, kind
        self.provenance, self.id = provenance, id

    def copied(self, invars: Sequence[Atom], id: int, provenance: Provenance | None = None) -> Equation:
        """The same operation on other operands of the same types, with results of its own."""
        outvars = [Var(v.aval) for v in self.outvars]
        place = provenance or self.provenance
        return Equation(self.primitive, invars, outvars, self.params, self.effects, place, id, self.kind)

    def __repr__(self) -> str:
        from xlamini.core.printing import format_equation

        return format_equation(self)


class Jaxpr:
    """A program: constvars and invars in, outvars out, equations in between.

    `constvars` stand for captured values, which are in `consts`; jaxprs inside an equation's params have none, their
    captures are operands of the equation.
    """

    __slots__ = ("__weakref__", "consts", "constvars", "effects", "eqns", "invars", "memo", "name", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Equation],
        name: str = "",
        consts: Sequence[Any] = (),
    ):
        self.constvars, self.invars, self.consts = list(constvars), list(invars), list(consts)
        self.outvars, self.eqns = list(outvars), list(eqns)
        self.name = name
        self.effects = effects_of(eqns)
        self.memo: dict[Any, Any] = {}

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        """A new jaxpr with some fields changed (and nothing remembered)."""
        fields = ("constvars", "invars", "outvars", "eqns", "name", "consts")
        return Jaxpr(**{**{f: getattr(self, f) for f in fields}, **changes})

    def __repr__(self) -> str:
        from xlamini.core.printing import format_jaxpr

        return format_jaxpr(self)


class ClosedJaxpr:
    """A jaxpr with the values it captured."""

    __slots__ = ("consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]):
        self.jaxpr, self.consts = jaxpr, list(consts)

    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)

    def pretty_print(self, **options: Any) -> str:
        """The program as text; options: `source=True` adds the user's lines, `width=` the line width."""
        from xlamini.core.printing import format_jaxpr

        return format_jaxpr(self.jaxpr, **options)

    def __repr__(self) -> str:
        return self.pretty_print()


def effects_of(eqns: Sequence[Equation]) -> Effects:
    found: set = set()
    for eqn in eqns:
        if eqn.effects:
            found |= eqn.effects
    return frozenset(found) if found else no_effects


def once(fun: Callable[[Jaxpr], R]) -> Callable[[Jaxpr], R]:
    """Decorator for a function of a jaxpr and nothing else, whose result is memoised on the jaxpr."""

    @functools.wraps(fun)
    def memoised(jaxpr: Jaxpr) -> R:
        result = jaxpr.memo.get(fun)
        if result is None:
            return rewrites.keep(jaxpr, fun, fun(jaxpr))
        rewrites.hits += 1
        return result

    return memoised


def close_over(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with its captured values as leading ordinary inputs; the same one each time."""
    return _closed(jaxpr) if jaxpr.constvars else jaxpr


@once
def _closed(jaxpr: Jaxpr) -> Jaxpr:
    return jaxpr.replace(constvars=[], consts=[], invars=jaxpr.constvars + jaxpr.invars)


def subjaxprs(eqn: Equation) -> list[Jaxpr]:
    """The jaxprs inside an equation's params, in the order of the params."""
    return jaxprs_in(eqn.params)


def jaxprs_in(params: dict[str, Any]) -> list[Jaxpr]:
    """The jaxprs among params, alone or in tuples, in the order of the params."""
    found = []
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Jaxpr):
                found.append(item)
    return found
