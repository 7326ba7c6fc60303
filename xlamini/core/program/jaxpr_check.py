"""The jaxpr checker: scoping, types, effects. Runs after every rewrite in the tests and under `enable_checks`."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core.errors import JaxprError
from xlamini.core.program.avals import Avals
from xlamini.core.program.hi_types import fits
from xlamini.core.program.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects_of, subjaxprs
from xlamini.core.program.primitive import CallLike
from xlamini.core.tracing.tracer import Builder, active


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raise JaxprError unless each variable is assigned once, before its uses, with the type that the rule gives."""
    defined: set[Var] = set()
    _define(defined, [*jaxpr.constvars, *jaxpr.invars], jaxpr, None)
    with active(Builder("check")):
        for eqn in jaxpr.eqns:
            _check_used(defined, eqn.invars, jaxpr, eqn)
            _check_types(jaxpr, eqn)
            for inner in subjaxprs(eqn):
                _check_inner(inner, jaxpr, eqn)
            if isinstance(eqn.primitive, CallLike):
                _check_operands(eqn.params[eqn.primitive.called], jaxpr, eqn)
            _define(defined, eqn.outvars, jaxpr, eqn)
    _check_used(defined, jaxpr.outvars, jaxpr, None)
    if jaxpr.effects != effects_of(jaxpr.eqns):
        raise _error("its effects are not those of its equations", jaxpr, None)


def _define(defined: set[Var], variables: Sequence[Var], jaxpr: Jaxpr, eqn: Equation | None) -> None:
    for var in variables:
        if var in defined:
            raise _error(f"variable {var!r} is assigned twice", jaxpr, eqn)
        defined.add(var)


def _check_used(defined: set[Var], atoms: Sequence[Atom], jaxpr: Jaxpr, eqn: Equation | None) -> None:
    for atom in atoms:
        if isinstance(atom, Literal):
            if atom.aval.shape != ():
                raise _error(f"literal {atom!r} is not a scalar", jaxpr, eqn)
        elif atom not in defined:
            raise _error(f"variable {atom!r} is used before it is assigned", jaxpr, eqn)


def _check_types(jaxpr: Jaxpr, eqn: Equation) -> None:
    expected = eqn.primitive.shape_rule(*[a.aval for a in eqn.invars], **eqn.params)
    expected = expected if eqn.primitive.multiple_results else [expected]
    found = [v.aval for v in eqn.outvars]
    weak = [[a.weak_type for a in avals] for avals in (expected, found)]
    if not _fit(expected, found) or weak[0] != weak[1]:
        raise _error(f"its outputs are {found}, but its shape rule says {list(expected)}", jaxpr, eqn)


def _fit(found: Avals, due: Avals) -> bool:
    return len(found) == len(due) and all(map(fits, found, due))


def _check_inner(inner: Jaxpr, jaxpr: Jaxpr, eqn: Equation) -> None:
    if inner.constvars:
        raise _error("a jaxpr in its params captures values; they must be operands", jaxpr, eqn)
    check_jaxpr(inner)


def _check_operands(callee: Jaxpr, jaxpr: Jaxpr, eqn: Equation) -> None:
    found = [a.aval for a in eqn.invars]
    if not _fit(found, callee.in_avals):
        raise _error(f"its operands are {found}, but its jaxpr takes {callee.in_avals}", jaxpr, eqn)


def _error(problem: str, jaxpr: Jaxpr, eqn: Equation | None) -> JaxprError:
    where = f"equation e{eqn.id} {eqn.primitive.name} ({eqn.provenance.describe()})" if eqn else "the jaxpr"
    return JaxprError(f"{where} is not well formed: {problem}\n\n{jaxpr!r}")
