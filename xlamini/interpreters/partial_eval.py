"""Partial evaluation: part a program by what is known now and what only later.

    partial_eval(jaxpr, unknown)  ->  known:   known inputs -> (known outputs, residuals)
                                      unknown: (residuals, unknown inputs) -> unknown outputs

The same two builders as in linearize do the work: an equation with an unknown operand lands in the inner one.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Jaxpr, Var, close_over
from xlamini.core.provenance import derived
from xlamini.core.rewriting import rewrite
from xlamini.core.tracer import Builder, TangentBuilder, Tracer, active
from xlamini.interpreters.environment import read, write


class Parted(NamedTuple):
    """`known` returns known outputs and then residuals; `unknown` takes the residuals first."""

    known: Jaxpr
    unknown: Jaxpr
    unknown_out: tuple[bool, ...]


@rewrite
def partial_eval(jaxpr: Jaxpr, unknown: tuple[bool, ...]) -> Parted:
    """The two halves of `jaxpr`, for the inputs in `unknown` not being known."""
    known_builder = Builder(jaxpr.name)
    with active(known_builder):
        env: dict[Var, Any] = {
            v: known_builder.input(v.aval) for v, u in zip(jaxpr.invars, unknown, strict=True) if not u
        }
        outs, later, residuals, unknown_out = _part(jaxpr, unknown, env)
        known, _ = known_builder.finish([*outs, *residuals])
    return Parted(known, close_over(later), unknown_out)


def _part(
    jaxpr: Jaxpr, unknown: Sequence[bool], env: dict[Var, Any]
) -> tuple[list[Any], Jaxpr, list[Any], tuple[bool, ...]]:
    later = TangentBuilder(jaxpr.name)
    with active(later):
        env.update((v, later.input(v.aval)) for v, u in zip(jaxpr.invars, unknown, strict=True) if u)
        for eqn in jaxpr.eqns:
            _part_equation(later, env, eqn)
        later.provenance = None
        outs = read(env, jaxpr.outvars)
        unknown_out = tuple(type(x) is Tracer and x.builder is later for x in outs)
        unknown_jaxpr, residuals = later.finish([x for x, u in zip(outs, unknown_out, strict=True) if u])
    known_outs = [x for x, u in zip(outs, unknown_out, strict=True) if not u]
    return known_outs, unknown_jaxpr, residuals, unknown_out


def _part_equation(later: TangentBuilder, env: dict[Var, Any], eqn: Any) -> None:
    inputs = read(env, eqn.invars)
    unknown = [type(x) is Tracer and x.builder is later for x in inputs]
    if not any(unknown):
        env.update(zip(eqn.outvars, later.replay(eqn, inputs), strict=True))
        return
    later.provenance = derived("partial_eval", eqn)
    write(env, eqn, eqn.primitive.partial_eval(unknown, inputs, **eqn.params))
