"""Discharge: a program of refs becomes one of their values, which returns those that it wrote.

    discharge(jaxpr)  ->  the program of values; its first results are the final values of the refs in `written(jaxpr)`

It runs as soon as a program is traced, so that no other interpreter meets a ref. The rule `discharge` of a primitive
says what an equation does to the values; a loop carries those that its body writes, a branch returns them.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Jaxpr, Values, rewrite
from xlamini.core.program.bindable import further
from xlamini.core.program.jaxpr import Equation, Var, derived
from xlamini.core.program.ref_types import AbstractRef, RefPrimitive
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, read


class OfValues(NamedTuple):
    """The program of the values of refs, and for each input whether it is a ref that is written."""

    jaxpr: Jaxpr
    changes: tuple[bool, ...]


def discharge(jaxpr: Jaxpr) -> Jaxpr:
    """The program of the refs' values; it returns the final values of those that are written before its own results.

    A program without refs is its own.
    """
    return of_values(jaxpr).jaxpr


def written(jaxpr: Jaxpr) -> list[Var]:
    """The inputs that are refs and are written, in their order."""
    return [v for v, changes in zip(jaxpr.invars, of_values(jaxpr).changes, strict=True) if changes]


@rewrite
def of_values(jaxpr: Jaxpr) -> OfValues:
    """The program of values, with what it returns of them."""
    types = list(map(_value_type, jaxpr.in_avals))
    if types == jaxpr.in_avals:
        return OfValues(jaxpr, (False,) * len(types))
    changed: set[Var] = set()
    made, captured = build(lambda *values: _discharged(jaxpr, values, changed), types, jaxpr.name)
    assert not captured
    return OfValues(made, tuple(v in changed for v in jaxpr.invars))


def _value_type(aval: Any) -> Any:
    return aval.inner_aval if type(aval) is AbstractRef else aval


def _discharged(jaxpr: Jaxpr, values: Values, changed: set[Var]) -> list[Any]:
    """The final values and the results, by the active builder; the variables of the former are added to the set."""
    env = bound(jaxpr, values)
    for eqn in jaxpr.eqns:
        refs = [a if type(a.aval) is AbstractRef else None for a in eqn.invars]
        inputs = read(env, eqn.invars)
        outs, new = _on_values(eqn, refs, inputs) if any(refs) else (builder().replay(eqn, inputs), {})
        changed.update(new)
        env.update({**dict(zip(eqn.outvars, outs, strict=True)), **new})
    return read(env, [*[v for v in jaxpr.invars if v in changed], *jaxpr.outvars])


def _on_values(eqn: Equation, refs: Sequence[Any], inputs: Values) -> tuple[list[Any], dict[Var, Any]]:
    target = builder()
    target.provenance = derived("discharge", eqn)
    outs, new = further(eqn.primitive, "discharge")(refs, inputs, **eqn.params)
    target.provenance = None
    return outs, new


def read_by(jaxpr: Jaxpr) -> set[Var]:
    """The variables that an equation takes, or that the program returns."""
    return {a for atoms in (jaxpr.outvars, *[eqn.invars for eqn in jaxpr.eqns]) for a in atoms if type(a) is Var}


def without_idle_reads(jaxpr: Jaxpr) -> Jaxpr:
    """The program without the reads whose results it does not use."""
    used = read_by(jaxpr)
    return jaxpr.replace(eqns=[eqn for eqn in jaxpr.eqns if not _is_read(eqn) or used.intersection(eqn.outvars)])


def _is_read(eqn: Equation) -> bool:
    return isinstance(eqn.primitive, RefPrimitive) and not eqn.primitive.writes
