"""Discharge: a program of refs becomes one of their values, which returns those that it wrote.

    discharge(jaxpr)  ->  the program of values; its first results are the final values of the refs in `written(jaxpr)`

It runs as soon as a program is traced, so that no other interpreter meets a ref.
"""
from __future__ import annotations

from typing import Any, cast

from xlamini.core import Jaxpr, once, rewrite
from xlamini.core.program.jaxpr import Var, derived
from xlamini.core.program.ref_types import AbstractRef, RefPrimitive
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, read


def _value_type(aval: Any) -> Any:
    return aval.inner_aval if type(aval) is AbstractRef else aval


@once
def written(jaxpr: Jaxpr) -> list[Var]:
    """The inputs that are refs and are written, in their order."""
    found = {eqn.invars[0] for eqn in jaxpr.eqns if _is_write(eqn)}
    return [v for v in jaxpr.invars if v in found]


def _is_write(eqn: Any) -> bool:
    return _is_on_ref(eqn) and eqn.primitive.writes


def _is_on_ref(eqn: Any) -> bool:
    return isinstance(eqn.primitive, RefPrimitive)


def read_by(jaxpr: Jaxpr) -> set[Var]:
    """The variables that an equation takes, or that the program returns."""
    return {a for atoms in (jaxpr.outvars, *[eqn.invars for eqn in jaxpr.eqns]) for a in atoms if type(a) is Var}


def without_idle_reads(jaxpr: Jaxpr) -> Jaxpr:
    """The program without the reads whose results it does not use."""
    used = read_by(jaxpr)
    eqns = [eqn for eqn in jaxpr.eqns if not _is_on_ref(eqn) or _is_write(eqn) or used.intersection(eqn.outvars)]
    return jaxpr.replace(eqns=eqns)


@rewrite
def discharge(jaxpr: Jaxpr) -> Jaxpr:
    """The program of the refs' values; it returns the final values of those that are written before its own results.

    A program without refs is its own.
    """
    types = list(map(_value_type, jaxpr.in_avals))
    if types == jaxpr.in_avals:
        return jaxpr
    of_values, captured = build(lambda *values: _discharged(jaxpr, values), types, jaxpr.name)
    assert not captured
    return of_values


def _discharged(jaxpr: Jaxpr, values: Any) -> list[Any]:
    env, target = bound(jaxpr, values), builder()
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        if _is_on_ref(eqn):
            target.provenance = derived("discharge", eqn)
            x, *operands = inputs
            outs, new = cast(RefPrimitive, eqn.primitive).discharge(x, operands, **eqn.params)
            target.provenance = None
            env[cast(Var, eqn.invars[0])] = new
        else:
            outs = target.replay(eqn, inputs)
        env.update(zip(eqn.outvars, outs, strict=True))
    return read(env, [*written(jaxpr), *jaxpr.outvars])
