"""Partial evaluation: a program is split by which of its inputs are known.

    partial_eval(jaxpr, unknown)  ->  known:   known inputs -> (known outputs, residuals)
                                      unknown: (residuals, unknown inputs) -> unknown outputs

As in linearization there are two builders: an equation with an unknown operand goes into the inner one.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.core import Builder, Jaxpr, Tracer, Values, Var, active, close_over, rewrite
from xlamini.core.program.bindable import further
from xlamini.core.program.jaxpr import derived
from xlamini.core.tracing.tracer import TangentBuilder
from xlamini.interpreters.bindings import read, write
from xlamini.interpreters.jvp import Mask
from xlamini.interpreters.residuals import gather_residuals, locate_residuals


class Parted(NamedTuple):
    """The result of partial evaluation: `known` returns outputs, then new residuals; `unknown` takes residuals first.

    `sources` is the index of each residual among the inputs and results of `known`.
    """

    known: Jaxpr
    unknown: Jaxpr
    unknown_out: Mask
    sources: tuple[int, ...]

    @property
    def num_residuals(self) -> int:
        return len(self.sources)

    def split_outputs(self, inputs: Values, results: Values) -> tuple[list[Any], list[Any]]:
        """The known outputs and the residuals, from the inputs and results of `known`."""
        count = len(self.unknown_out) - sum(self.unknown_out)
        return list(results[:count]), gather_residuals(self.sources, inputs, results)


@rewrite
def partial_eval(jaxpr: Jaxpr, unknown: Mask, force: Mask = ()) -> Parted:
    """The known and the unknown program of `jaxpr`, for a mask of its unknown inputs.

    Outputs marked in `force` come from the unknown program, even if they are known.
    """
    known_builder = Builder(jaxpr.name)
    with active(known_builder):
        env: dict[Var, Any] = {
            v: known_builder.input(v.aval) for v, u in zip(jaxpr.invars, unknown, strict=True) if not u
        }
        inputs = list(env.values())
        env.update(zip(jaxpr.constvars, jaxpr.consts, strict=True))
        outs, later, residuals, unknown_out = _part(jaxpr, unknown, force, env)
        new, sources = locate_residuals(known_builder, [*inputs, *outs], residuals)
        known, _ = known_builder.finish([*outs, *new])
    return Parted(known, close_over(later), unknown_out, sources)


def _part(
    jaxpr: Jaxpr, unknown: Mask, force: Mask, env: dict[Var, Any]
) -> tuple[list[Any], Jaxpr, list[Any], Mask]:
    later = TangentBuilder(jaxpr.name)
    later.environment = env
    with active(later):
        env.update((v, later.input(v.aval)) for v, u in zip(jaxpr.invars, unknown, strict=True) if u)
        for eqn in jaxpr.eqns:
            _part_equation(later, env, eqn)
        later.provenance = None
        outs = read(env, jaxpr.outvars)
        wanted = force or (False,) * len(outs)
        unknown_out = tuple(
            w or (type(x) is Tracer and x.builder is later) for x, w in zip(outs, wanted, strict=True)
        )
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
    rule = further(eqn.primitive, "partial_eval")
    outs = eqn.primitive.bind(*inputs, **eqn.params) if rule is None else rule(unknown, inputs, **eqn.params)
    write(env, eqn, outs)
