"""The decorator of rewrites: results are memoised on the jaxpr, and checked under `enable_checks`.

A rule may capture values: an array that a custom rule closes over, a tracer of an outer trace. They are constvars of
the resulting jaxpr, with their values in `consts`.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from xlamini.core.caching.memo import paused_gc
from xlamini.core.events import REWRITTEN, Phase, is_phase
from xlamini.core.flags import config
from xlamini.core.program.avals import Params
from xlamini.core.program.bindable import around
from xlamini.core.program.jaxpr import Equation, Jaxpr, Provenance, rewrites
from xlamini.core.program.jaxpr_check import check_jaxpr
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Tracer

P = ParamSpec("P")
R = TypeVar("R")

_WITH_JAXPRS = (Jaxpr, tuple, list)


def rewrite(fun: Callable[Concatenate[Jaxpr, P], R]) -> Callable[Concatenate[Jaxpr, P], R]:
    """Memoise `fun(jaxpr, *options)` on the jaxpr, and check its result when checks are on.

    The result consists of jaxprs and plain data.
    """

    @functools.wraps(fun)
    def memoised(jaxpr: Jaxpr, *options: P.args, **no_keywords: P.kwargs) -> R:
        assert not no_keywords, "options of a rewrite are positional, so that all of them are in the key"
        key = (fun, options, config.trace_context_key(), state.axes)
        result = jaxpr.memo.get(key)
        if result is None and state.builder is not None:
            result = state.builder.memo.get((jaxpr, key))
        if result is not None:
            rewrites.hits += 1
            return result
        if is_phase(REWRITTEN):  # of an inner jaxpr, by the rewrite of the program around it
            result = fun(jaxpr, *options, **no_keywords)
        else:
            with paused_gc(), Phase(REWRITTEN, jaxpr.name) as phase:
                result = fun(jaxpr, *options, **no_keywords)
                phase.program = fun, jaxpr, result
        if config.enable_checks.value:
            check_result(result)
        return _keep(jaxpr, key, result)

    return memoised


def rewritten_params(eqn: Equation, fun: Callable[[Jaxpr], Jaxpr]) -> Params:
    """The params of an equation, with `fun` applied to the jaxprs among them."""

    def of(value: Any) -> Any:
        if isinstance(value, Jaxpr):
            return fun(value)
        return type(value)(map(of, value)) if type(value) in (tuple, list) else value

    with around(eqn):
        return {name: of(value) if isinstance(value, _WITH_JAXPRS) else value for name, value in eqn.params.items()}


def with_jaxprs(eqn: Equation, fun: Callable[[Jaxpr], Jaxpr]) -> Equation:
    """The equation with `fun` applied to the jaxprs among its params; itself if none changes."""
    params = rewritten_params(eqn, fun)
    if params == eqn.params:
        return eqn
    return Equation(eqn.primitive, eqn.invars, eqn.outvars, params, eqn.effects, eqn.provenance, eqn.id, eqn.kind)


def placed(jaxpr: Jaxpr, place: Provenance) -> Jaxpr:
    """The program with all its equations, also those inside of others, at one place."""
    return jaxpr.replace(eqns=[with_jaxprs(eqn.at(place), lambda inner: placed(inner, place)) for eqn in jaxpr.eqns])


def check_result(result: Any) -> None:
    """Check every jaxpr in the result of a rewrite."""
    for jaxpr in _jaxprs(result):
        check_jaxpr(jaxpr)


def _keep(jaxpr: Jaxpr, key: Any, result: R) -> R:
    builder = state.builder
    if builder is None or not any(Tracer in map(type, made.consts) for made in _jaxprs(result) if made.consts):
        return rewrites.keep(jaxpr, key, result)
    # Captured tracers belong to the trace that is going on; the next one captures its own.
    builder.memo[jaxpr, key] = result
    return result


def _jaxprs(result: Any) -> list[Jaxpr]:
    return [x for x in (result if isinstance(result, tuple) else (result,)) if isinstance(x, Jaxpr)]
