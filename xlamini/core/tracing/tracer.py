"""Tracers and the builder that collects their equations.

While a builder is active (`state.builder`), binding a primitive adds an equation to it and returns a tracer. A value
from outside, an outer builder's tracer or an array, becomes a captured input; Python and NumPy scalars become literals.
Without an active builder, binding evaluates eagerly (`hooks.evaluate`).
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from xlamini.core import hooks
from xlamini.core.caching.memo import paused_gc
from xlamini.core.errors import ShardingTypeError, UnexpectedTracerError
from xlamini.core.errors.frames import Source, hidden_files, user_line
from xlamini.core.errors.operand_conflicts import report_conflicts
from xlamini.core.flags import config
from xlamini.core.program.avals import SCALAR_TYPES, Avals, Params, ShapedArray, Typed, Values, aval_of, types_of_values
from xlamini.core.program.equation_kind import kinds, new_kind
from xlamini.core.program.jaxpr import Atom, Equation, Jaxpr, Literal, Provenance, Var
from xlamini.core.program.literals import literal
from xlamini.core.program.tangents import Linear, NonlinearError, Zero
from xlamini.core.sharding.manual_axes import missing
from xlamini.core.sharding.partial_sums import Misfit, misfit
from xlamini.core.tracing.depth import make_room
from xlamini.core.tracing.one_tracer import seal
from xlamini.core.tracing.state import state

_kinds = kinds.table
A_RULE = "a rule"


class Tracer(Typed):
    """A value of the program being traced: it has a type (`aval`), but no number.

    >>> xlamini.jit(lambda x: print(x, x.shape))(jnp.ones(3))
    JitTracer(float32[3]) (3,)
    """

    __slots__ = ("__weakref__", "aval", "builder", "variable")
    aval: ShapedArray
    builder: Builder
    variable: Atom

    def __init__(self, builder: Builder, var: Atom, aval: ShapedArray):
        self.builder, self.variable, self.aval = builder, var, aval

    weak_type: property = property(lambda self: self.aval.weak_type)

    @property
    def sharding(self) -> NoReturn:
        """An AttributeError, because a traced value is on no device yet."""
        raise AttributeError(
            f"The 'sharding' attribute is not available on a traced array, {self.aval.str_long()}: the compiler "
            "chooses it later; xlamini.typeof(x).sharding is that along explicit axes, and "
            "debug.inspect_array_sharding(x, callback=print) prints the compiler's choice"
        )

    def __repr__(self) -> str:
        weak = "~" if self.aval.weak_type else ""
        return f"JitTracer({weak}{self.aval.str_short(short_dtypes=False)})"

    __hash__: Any = None  # so that libraries which ask are told that it is not Hashable

    def __init_subclass__(cls, **kwargs: Any) -> None:
        seal(cls)


_SHALLOW = 8
"""The depth of nested traces that fits into Python's recursion limit."""


class Builder:
    """Collects the equations of one jaxpr."""

    __slots__ = (
        "__weakref__", "arg_names", "captured", "depth", "derivative_by", "environment", "equations", "evaluates",
        "inputs", "kept", "known", "memo", "name", "parent", "producers", "provenance", "sources",
    )  # fmt: skip
    arg_names: Sequence[str] | None
    derivative_by: str
    name: str
    evaluates: bool
    kept: bool

    def __init__(self, name: str, arg_names: Sequence[str] | None = None, derivative_by: str = ""):
        self.parent: Any = state.builder
        self.depth = 0 if self.parent is None else self.parent.depth + 1
        if self.depth > _SHALLOW:
            make_room(self.depth, name)
        self.name, self.arg_names, self.derivative_by = name, arg_names, derivative_by
        self.kept = self.evaluates = False  # whether later calls reuse it; whether what is known is evaluated at once
        self.equations: list[Equation] = []
        self.inputs: list[Var] = []
        self.captured: dict[Any, tuple[Var, Any]] = {}
        self.known: dict[Var, Any] = {}
        self.producers: dict[Var, Equation] = {}
        self.memo: dict[Any, Any] = {}
        self.environment: dict[Var, Any] = {}
        self.provenance: Provenance | None = None
        self.sources: dict[tuple[Any, ...], Provenance] = {} if self.parent is None else self.parent.sources

    def input(self, aval: ShapedArray, value: Any = None) -> Tracer:
        """A new input; `value` lets Python control flow read its number."""
        var = Var(aval)
        self.inputs.append(var)
        if value is not None:
            self.known[var] = value
        return Tracer(self, var, aval)

    def emit(self, primitive: Any, operands: Values, params: Params) -> Any:
        """Add the equation `primitive[params] operands`; its output tracer, or a list of them."""
        atoms, key = [], [primitive]
        for x in operands:  # one loop, as this runs for every equation of every program
            atom = x.variable if type(x) is Tracer and x.builder is self else self.atom(x)
            atoms.append(atom)
            key.append(atom.aval)
        if params:
            key.extend(params.items())
        kind = _kinds.get(tuple(key)) if primitive.is_pure else None
        if kind is None:
            more = missing(primitive, atoms, params)
            if more is not None:
                alike = [hooks.cast_varying(x, axes) if axes else x for x, axes in zip(operands, more, strict=True)]
                return self.emit(primitive, alike, params)
            avals = [a.aval for a in atoms]
            unfit = None if all(a.explicit_sharding is None for a in avals) else misfit(primitive, avals, params)
            if unfit is not None:
                return self.emit(primitive, self._resharded(operands, unfit), params)
            kind = new_kind(primitive, key, params, avals)
            conflicts = kind.memory_conflict or kind.sharding_conflict
            if conflicts is not None and self.provenance is None:  # no user can mend a rewrite's equations
                report_conflicts(kind, primitive.multiple_results, atoms, self.producers_by_now)
        provenance, equations, out = self.provenance or self.here(), self.equations, kind.result_types
        outvars = [Var(aval) for aval in out] if primitive.multiple_results else [Var(out)]
        equations.append(Equation(primitive, atoms, outvars, params, kind.effects, provenance, len(equations), kind))
        if primitive.multiple_results:
            return [Tracer(self, v, v.aval) for v in outvars]
        return Tracer(self, outvars[0], out)

    def _resharded(self, operands: Values, unfit: Misfit) -> list[Any]:
        """The operands of a rewrite's equation, resharded so that they fit; ShardingTypeError for a user's equation."""
        if self.provenance is None:
            raise ShardingTypeError(unfit.problem)
        return [hooks.reshard_as(x, split) for x, split in zip(operands, unfit.wanted, strict=True)]

    def replay(self, eqn: Equation, operands: Values) -> list[Tracer]:
        """Add a copy of an equation of another jaxpr, with its result types and its provenance."""
        atoms = [x.variable if type(x) is Tracer and x.builder is self else self.atom(x) for x in operands]
        new = eqn.copied(atoms, len(self.equations))
        self.equations.append(new)
        return [Tracer(self, v, v.aval) for v in new.outvars]

    def copied(self, jaxpr: Jaxpr, operands: Values, provenance: Provenance | None = None) -> list[Any]:
        """Add copies of a jaxpr's equations and return its outputs; `provenance` replaces that of the equations."""
        env: dict[Atom, Atom] = {}
        for v, x in zip(jaxpr.invars, operands, strict=True):
            env[v] = x.variable if type(x) is Tracer and x.builder is self else self.atom(x)
        if jaxpr.constvars:
            env.update(zip(jaxpr.constvars, map(self.atom, jaxpr.consts), strict=True))
        equations = self.equations
        for eqn in jaxpr.eqns:
            atoms = [env[a] if type(a) is Var else a for a in eqn.invars]
            outvars = []
            for v in eqn.outvars:
                env[v] = new = Var(v.aval)
                outvars.append(new)
            place = provenance or eqn.provenance
            equations.append(
                Equation(eqn.primitive, atoms, outvars, eqn.params, eqn.effects, place, len(equations), eqn.kind)
            )
        return [Tracer(self, env[a], a.aval) if type(a) is Var else a for a in jaxpr.outvars]

    inline = copied
    """The outputs of a jaxpr; a builder may run equations instead, or give them to another."""

    def atom(self, x: Any) -> Atom:
        """The variable or literal of a value in this builder."""
        kind = type(x)
        if kind is Tracer:
            return x.variable if x.builder is self else self._capture(x.variable, x)
        if kind is Literal:
            return x
        if kind in SCALAR_TYPES or isinstance(x, np.generic):
            return literal(x)
        return self._capture(id(x), x)

    def _capture(self, key: Any, value: Any) -> Atom:
        if type(key) is Literal:
            return key
        entry = self.captured.get(key)
        if entry is None:
            if key in self.environment:  # a value for which another stands in a rule
                return self.atom(self.environment[key])
            if type(value) is Tracer and not self._is_within(value.builder):
                return self.atom(self._rewritten(value))
            made = hooks.hi_variable(value) if type(value) in types_of_values else getattr(value, "as_literal", None)
            if made is not None:
                return self.atom(made)
            self._check_capturable(value)
            entry = self.captured[key] = (Var(aval_of(value)), value)
        return entry[0]

    def _rewritten(self, tracer: Tracer) -> Any:
        found = self.stand_in(tracer)
        if found is None:
            raise leaked(tracer)
        return found

    def stand_in(self, tracer: Tracer) -> Any:
        """The rewritten value of a tracer that a rule closed over, while its program is being rewritten; else None."""
        builder: Builder | None = self
        while builder is not None:
            if tracer.variable in builder.environment:
                return builder.environment[tracer.variable]
            builder = builder.parent
        return None

    def _check_capturable(self, value: Any) -> None:
        if type(value) in (Linear, Zero):
            made_by = f", made by {self.provenance.describe()}" if self.provenance else ""
            raise NonlinearError(
                f"{value!r} has no value to compute with{made_by}; a function to be transposed must be linear in all "
                "its differentiated arguments together"
            )

    def _is_within(self, other: Builder) -> bool:
        ancestor = self.parent
        while ancestor is not None and ancestor is not other:
            ancestor = ancestor.parent
        return ancestor is other

    def is_tracing(self) -> bool:
        """Whether this thread is still tracing into it."""
        current = state.builder
        return current is not None and (current is self or current._is_within(self))

    def producers_by_now(self) -> dict[Var, Equation]:
        """The equation that computes each variable, for all equations so far."""
        start = len(self.equations)
        while start and not any(v in self.producers for v in self.equations[start - 1].outvars[:1]):
            start -= 1
        for eqn in self.equations[start:]:
            for v in eqn.outvars:
                self.producers[v] = eqn
        return self.producers

    def here(self) -> Provenance:
        """The provenance of the user's current line."""
        frame: Any = sys._getframe(2)  # above this method and its caller
        while hidden_files[frame.f_code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
        key = (id(frame.f_code), frame.f_lasti, state.scope)
        known = self.sources.get(key)
        if known is None:
            source = Source(frame.f_code, frame.f_lasti, frame.f_lineno)
            known = self.sources[key] = Provenance(source, state.scope)
        return known

    def finish(self, outputs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The finished jaxpr and the values of its constvars."""
        outvars = [self.atom(x) for x in outputs]
        constvars = [var for var, _ in self.captured.values()]
        consts = [value for _, value in self.captured.values()]
        return Jaxpr(constvars, self.inputs, outvars, self.equations, self.name, consts), consts


class TangentBuilder(Builder):
    """Keeps the equations that depend on its own inputs and passes all others to its parent.

    A derivative rule run under it splits into two programs: the parent gets the primal one, this builder the linear
    one, and the values that it captures are the residuals. A constant, such as an array of zeros, is recomputed instead
    of captured.
    """

    __slots__ = ("constants", "remade", "scanned")

    def __init__(self, name: str):
        super().__init__(name)
        self.constants: dict[Atom, Equation] = {}
        self.remade: dict[Atom, Atom] = {}
        self.scanned: int = 0

    def _owns(self, operands: Values) -> bool:
        for x in operands:  # a loop, as this runs for every equation that a derivative rule makes
            if type(x) is Tracer and x.builder is self:
                return True
        return False

    def emit(self, primitive: Any, operands: Values, params: Params) -> Any:
        if self._owns(operands):
            return Builder.emit(self, primitive, operands, params)
        parent: Any = self.parent
        parent.provenance = self.provenance
        return parent.emit(primitive, operands, params)

    def replay(self, eqn: Equation, operands: Values) -> list[Tracer]:
        if self._owns(operands):
            return super().replay(eqn, operands)
        parent: Any = self.parent
        return parent.replay(eqn, operands)

    def _capture(self, key: Any, value: Any) -> Atom:
        remade = self.remade.get(key)
        if remade is None and key not in self.captured:
            eqn = self._constants_of_parent().get(key)
            if eqn is not None:
                remade = self.remade[key] = super().replay(eqn, eqn.invars)[0].variable
        return super()._capture(key, value) if remade is None else remade

    def _constants_of_parent(self) -> dict[Atom, Equation]:
        """The parent's equations without variable operands, by output variable."""
        equations = self.parent.equations if self.parent is not None else []
        for eqn in equations[self.scanned :]:
            if Var not in map(type, eqn.invars) and len(eqn.outvars) == 1 and not eqn.effects:
                self.constants[eqn.outvars[0]] = eqn
        self.scanned = len(equations)
        return self.constants


def is_usable(tracer: Tracer) -> bool:
    """Whether a tracer may be used here: its trace is active, or its program is being rewritten."""
    builder = state.builder
    return builder is not None and (tracer.builder.is_tracing() or builder.stand_in(tracer) is not None)


def leaked(tracer: Tracer, name: str = "") -> UnexpectedTracerError:
    """The error for a tracer, passed as the argument `name`, that is used after its trace has ended."""
    given = f", given as {name}," if name else ""
    error = UnexpectedTracerError(
        f"{tracer!r}{given} was made while tracing {tracer.builder.name or 'a function'}, {origin_of(tracer)}, and is "
        f"used after that trace ended, at {user_line()}. A traced value must not be kept in a global, an "
        "attribute or a closure: return it from the traced function instead."
    )
    error.tracer = tracer
    return error


def origin_of(tracer: Tracer) -> str:
    """The origin of a tracer, in words: an argument of the traced function, or a line."""
    builder, var = tracer.builder, tracer.variable
    for i, known in enumerate(builder.inputs):
        if known is var and builder.arg_names is not None:
            return f"as its argument {builder.arg_names[i]!r}"
    made = (e for e in builder.equations if any(v is var for v in e.outvars))
    return f"at {next((e.provenance.source for e in made), 'an unknown place')}"


class active:
    """`with active(builder):` sends equations to this builder (None: eager execution)."""

    __slots__ = ("_before", "_builder")

    def __init__(self, builder: Builder | None):
        self._builder = builder

    def __enter__(self) -> None:
        self._before, state.builder = state.builder, self._builder
        config.tracing.set_local(self._builder is not None)

    def __exit__(self, *error: object) -> None:
        state.builder = self._before
        config.tracing.set_local(self._before is not None)


def build(
    fun: Callable[..., Sequence[Any]],
    avals: Avals,
    name: str = "",
    arg_names: Sequence[str] | None = None,
    values: Sequence[Any] | None = None,
    derivative_by: str = "",
    kind: type[Builder] = Builder,
) -> tuple[Jaxpr, list[Any]]:
    """Trace `fun(*tracers) -> flat outputs`; the jaxpr and the values it captured.

    `values` (None where unknown) lets Python control flow ask for numbers. `derivative_by` names the transformation
    that differentiates the inputs, or is `A_RULE` if the program has a rule and is never differentiated itself.
    """
    builder = kind(name, arg_names, derivative_by)
    known = values if values is not None else [None] * len(avals)
    with active(builder), paused_gc():
        tracers = [builder.input(aval, value) for aval, value in zip(avals, known, strict=True)]
        return builder.finish(fun(*tracers))
