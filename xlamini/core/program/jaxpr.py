"""The intermediate representation: variables, literals, equations, jaxprs.

A jaxpr is a straight-line list of equations over typed variables. It is immutable once its builder has finished it, so
results of rewrites are memoised on it (`memo`) and live exactly as long as it does.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Final, TypeVar, final

from xlamini.core import hooks
from xlamini.core.caching.memo import OwnedMemo
from xlamini.core.program.avals import Params, ShapedArray, Values
from xlamini.core.program.bindable import further
from xlamini.core.program.debug_info import DebugInfo
from xlamini.core.program.effects import Effects, no_effects
from xlamini.core.program.hi_types import HiAval
from xlamini.core.program.primitive import Primitive
from xlamini.core.program.provenance import Provenance

R = TypeVar("R")

rewrites: Final = OwnedMemo("jaxpr: rewrites and facts", None, "memo", counted=True)
"""On each jaxpr: what `once`, `rewrite` and the keys of structure.py have made of it."""


@final
class Var:
    """A variable: assigned once, compared by identity.

    >>> x = xlamini.make_jaxpr(lambda x: x + 1)(jnp.ones(3)).jaxpr.invars[0]
    >>> x.aval, x == Var(x.aval)
    (ShapedArray(float32[3]), False)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


@final
class Literal:
    """A scalar constant in a program.

    >>> _, one = xlamini.make_jaxpr(lambda x: x + 1)(2.0).eqns[0].invars
    >>> one, float(one.val), one.aval
    (Literal(1.0:f32[]), 1.0, ShapedArray(float32[], weak_type=True))
    """

    __slots__ = ("aval", "val")
    aval: ShapedArray
    val: Any

    def __init__(self, val: Any, aval: ShapedArray):
        self.val, self.aval = val, aval

    shape: property = property(lambda self: self.aval.shape)
    dtype: property = property(lambda self: self.aval.dtype)
    weak_type: property = property(lambda self: self.aval.weak_type)
    ndim: property = property(lambda self: self.aval.ndim)

    def __repr__(self) -> str:
        return f"Literal({self.val}:{self.aval.str_short()})"


Atom = Var | Literal
"""An operand of an equation, or an output of a program: a variable, or a constant.

>>> [isinstance(atom, Atom) for atom in xlamini.make_jaxpr(lambda x: x + 1)(2.0).eqns[0].invars]
[True, True]
"""


class EquationKind:
    """The result types (one, or a list), the effects, and what rewrites have derived from one such equation.

    All equations of one primitive with equal params and operand types share one kind (equation_kind.py).
    `sharding_conflict` says why the operands' shardings disagree, or is None. With a conflict, the compiler chooses the
    results' shardings; without one, they are those of the result types. `memory_conflict` says which operands are in
    different memories, or is None. A kind that is not `shared` belongs to one equation.
    """

    __slots__ = "__weakref__ derived effects memory_conflict result_types sharding_conflict shared".split()
    effects: Effects
    result_types: Any
    memory_conflict: str | None
    sharding_conflict: str | None

    def __init__(
        self, result_types: Any, effects: Effects, sharding_conflict: str | None, memory_conflict: str | None = None
    ):
        self.result_types, self.effects = result_types, effects
        self.sharding_conflict, self.memory_conflict = sharding_conflict, memory_conflict
        self.shared = False
        self.derived: dict[tuple[Any, ...], Any] = {}


class EquationContext:
    """What interpreters enter to bind an equation again: nothing, as flags are part of an equation's params here."""

    manager: nullcontext[None] = nullcontext()


_CONTEXT = EquationContext()


class Equation:
    """`outvars = primitive[params] invars`, with its provenance and its index in the jaxpr (`id`).

    `kind` is shared by all equations of its kind, in all programs; None in a program of one equation.

    >>> eqn = xlamini.make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(jnp.ones(3)).eqns[0]
    >>> eqn, eqn.primitive.name, eqn.params["axes"]
    (a:f32[] = reduce_sum[axes=(0,)] b, 'reduce_sum', (0,))
    """

    __slots__ = ("effects", "id", "invars", "kind", "outvars", "params", "primitive", "provenance")
    effects: Effects
    kind: EquationKind | None
    params: Params
    id: int
    provenance: Provenance
    invars: Sequence[Atom]
    outvars: Sequence[Var]
    primitive: Primitive

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: Params,
        effects: Effects,
        provenance: Provenance,
        id: int,
        kind: EquationKind | None = None,
    ):
        self.primitive, self.invars, self.outvars = primitive, invars, outvars
        self.params, self.effects, self.kind = params, effects, kind
        self.provenance, self.id = provenance, id

    def copied(self, invars: Sequence[Atom], id: int, provenance: Provenance | None = None) -> Equation:
        """The operation on other operands of the same types, with fresh output variables."""
        outvars = [Var(v.aval) for v in self.outvars]
        place = provenance or self.provenance
        return Equation(self.primitive, invars, outvars, self.params, self.effects, place, id, self.kind)

    def at(self, place: Provenance) -> Equation:
        """The same equation, with variables and all, of another provenance."""
        return Equation(self.primitive, self.invars, self.outvars, self.params, self.effects, place, self.id, self.kind)

    @property
    def source_info(self) -> Provenance:
        """The provenance, by JAX's name."""
        return self.provenance

    @property
    def ctx(self) -> EquationContext:
        """The context to bind the equation again in."""
        return _CONTEXT

    def replace(self, **changes: Any) -> Equation:
        """A new equation with some fields changed; it shares its kind with no other."""
        fields = ("primitive", "invars", "outvars", "params", "effects", "provenance", "id")
        changes.pop("ctx", None)
        if "source_info" in changes:
            changes["provenance"] = changes.pop("source_info")
        return Equation(**{**{f: getattr(self, f) for f in fields}, **changes})

    def __repr__(self) -> str:
        return hooks.format_equation(self)


def derived(rewrite: str, eqn: Equation) -> Provenance:
    """The provenance of the equations that a rewrite derives from an equation."""
    parent = eqn.provenance
    return Provenance(parent.source, parent.scope, rewrite, eqn)


_type_of = operator.attrgetter("aval")


class Jaxpr:
    """A program: input variables, equations, outputs.

    `constvars` are the variables of captured values, whose values are `consts`. A jaxpr in an equation's params has
    none: its captured values are operands of the equation.

    >>> jaxpr = xlamini.make_jaxpr(lambda x: x * 2)(2.0).jaxpr
    >>> jaxpr, jaxpr.in_avals
    ({ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }, [ShapedArray(float32[], weak_type=True)])
    >>> jaxpr.replace(eqns=[], outvars=jaxpr.invars)
    { lambda ; a:f32[]. let in (a,) }
    """

    __slots__ = ("__weakref__", "consts", "constvars", "effects", "eqns", "invars", "memo", "name", "outvars")
    consts: list[Any]
    constvars: list[Var]
    invars: list[Var]
    eqns: list[Equation]
    outvars: list[Atom]

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Equation],
        name: str = "",
        consts: Values = (),
    ):
        self.constvars, self.invars, self.consts = list(constvars), list(invars), list(consts)
        self.outvars, self.eqns = list(outvars), list(eqns)
        self.name: str = name
        self.effects: Effects = effects_of(eqns)
        self.memo: dict[Any, Any] = {}

    @property
    def jaxpr(self) -> Jaxpr:
        """The jaxpr itself: programs among params have no captured values, so they are read as closed jaxprs too."""
        return self

    def taking_consts(self) -> Jaxpr:
        """The program with the constvars as leading inputs; a jaxpr in another form (as_jax) is translated."""
        return close_over(self)

    def with_consts(self, consts: Values) -> Jaxpr:
        """The program with these captured values; a jaxpr in another form (as_jax) is translated."""
        return self.replace(consts=consts) if consts else self

    @property
    def literals(self) -> list[Any]:
        """The captured values, by JAX's older name."""
        return self.consts

    @property
    def debug_info(self) -> DebugInfo:
        """The program's name."""
        return DebugInfo("jit", self.name)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return list(map(_type_of, self.invars))

    @property
    def out_avals(self) -> list[ShapedArray]:
        return list(map(_type_of, self.outvars))

    def replace(self, **changes: Any) -> Jaxpr:
        """A new jaxpr with some fields changed and an empty memo."""
        fields = ("constvars", "invars", "outvars", "eqns", "name", "consts")
        changes.pop("effects", None)  # they are those of the equations
        if "debug_info" in changes:
            changes["name"] = changes.pop("debug_info").func_name
        return Jaxpr(**{**{f: getattr(self, f) for f in fields}, **changes})

    def __repr__(self) -> str:
        return hooks.format_jaxpr(self)


class ClosedJaxpr:
    """A jaxpr with its captured values.

    >>> from xlamini import extend
    >>> w = jnp.array([1.0, 2.0])
    >>> program = xlamini.make_jaxpr(lambda x: w * x)(w)
    >>> program, program.consts
    ({ lambda a:f32[2]; b:f32[2]. let c:f32[2] = mul a b in (c,) }, [Array([1., 2.], dtype=float32)])
    >>> extend.jaxpr_as_fun(program)(jnp.array([3.0, 4.0]))
    [Array([3., 8.], dtype=float32)]
    """

    __slots__ = ("consts", "jaxpr")
    consts: list[Any]
    jaxpr: Jaxpr

    def __init__(self, jaxpr: Jaxpr, consts: Values):
        self.jaxpr, self.consts = jaxpr, list(consts)

    @property
    def literals(self) -> list[Any]:
        """The captured values, by JAX's older name."""
        return self.consts

    @property
    def eqns(self) -> list[Equation]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.jaxpr.out_avals

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Values | None = None) -> ClosedJaxpr:
        """Another closed jaxpr, with another program or other captured values."""
        return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts)

    @property
    def debug_info(self) -> DebugInfo:
        """The program's name."""
        return self.jaxpr.debug_info

    def pretty_print(self, **options: Any) -> str:
        """The program as text; options: `source=True` adds the user's lines, `width=` the line width."""
        return hooks.format_jaxpr(self.jaxpr, **options)

    def __repr__(self) -> str:
        return self.pretty_print()


def effects_of(eqns: Sequence[Equation]) -> Effects:
    found: set = set()
    for eqn in eqns:
        if eqn.effects:
            found |= eqn.effects
    return frozenset(found) if found else no_effects


def once(fun: Callable[[Jaxpr], R]) -> Callable[[Jaxpr], R]:
    """Decorator for a function of a jaxpr only: its result is memoised on the jaxpr."""

    @functools.wraps(fun)
    def memoised(jaxpr: Jaxpr) -> R:
        result = jaxpr.memo.get(fun)
        if result is None:
            return rewrites.keep(jaxpr, fun, fun(jaxpr))
        rewrites.hits += 1
        return result

    return memoised


@once
def is_expanded(jaxpr: Jaxpr) -> bool:
    """Whether no equation is to be replaced before lowering, in the jaxpr and in those inside its equations."""
    ends = (*jaxpr.invars, *jaxpr.outvars)
    return not (any(map(expands, jaxpr.eqns)) or any(type(v.aval) is HiAval for v in ends))


def expands(eqn: Equation) -> bool:
    """Whether an equation is to be replaced before lowering, or one in its jaxprs."""
    primitive = eqn.primitive
    if primitive.expands:
        applies = further(primitive, "expands_on")
        return applies is None or applies([a.aval for a in eqn.invars], eqn.params)
    return primitive.higher_order and not all(map(is_expanded, subjaxprs(eqn)))


def close_over(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with its captured values as leading inputs; memoised."""
    return _closed(jaxpr) if jaxpr.constvars else jaxpr


@once
def _closed(jaxpr: Jaxpr) -> Jaxpr:
    return jaxpr.replace(constvars=[], consts=[], invars=jaxpr.constvars + jaxpr.invars)


def subjaxprs(eqn: Equation) -> list[Jaxpr]:
    """The jaxprs inside an equation's params, in the order of the params."""
    return jaxprs_in(eqn.params)


def jaxprs_in(params: Params) -> list[Jaxpr]:
    """The jaxprs that are params or items of tuple params, in the order of the params.

    >>> loop = xlamini.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x))(1.0).eqns[0]
    >>> [len(inner.eqns) for inner in jaxprs_in(loop.params)]
    [2]
    """
    found = []
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Jaxpr):
                found.append(item)
    return found
