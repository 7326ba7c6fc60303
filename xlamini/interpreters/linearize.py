"""Linearization: one pass splits a program into its primal computation and the linear map of its tangents.

    linearize(jaxpr, nonzero)  ->  primal:  inputs -> (outputs, new residuals)
                                   tangent: (residuals, tangents) -> tangents of outputs

The derivative rules run under a `TangentBuilder`: equations that depend on a tangent go into it, all others into the
primal builder, and a value that crosses from one to the other is, by definition, a residual. A residual that is already
an input or an output of `primal` is not returned again, because a program that returns its input copies it.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.core import Builder, Equation, Jaxpr, Tracer, Values, active, close_over, is_zero, rewrite, tangent_aval
from xlamini.core.program.jaxpr import derived
from xlamini.core.tracing.tracer import TangentBuilder
from xlamini.interpreters.bindings import builder
from xlamini.interpreters.jvp import Mask, instantiate_marked, push_forward, scatter_where, with_symbolic_zeros
from xlamini.interpreters.residuals import gather_residuals, locate_residuals
from xlamini.interpreters.rule_cache import rewrite_once_per_kind


class Linearized(NamedTuple):
    """The result of linearization: `primal` returns outputs, then new residuals; `tangent` takes residuals first.

    `sources` is the index of each residual among the inputs and results of `primal`.
    """

    primal: Jaxpr
    tangent: Jaxpr
    nonzero_out: tuple[bool, ...]
    sources: tuple[int, ...]

    @property
    def num_residuals(self) -> int:
        return len(self.sources)

    def split_outputs(self, inputs: Values, results: Values) -> tuple[list[Any], list[Any]]:
        """The outputs and the residuals, from the inputs and results of `primal`."""
        return list(results[: len(self.nonzero_out)]), gather_residuals(self.sources, inputs, results)


@rewrite
def linearize(jaxpr: Jaxpr, nonzero: Mask, force: Mask = ()) -> Linearized:
    """The primal and the tangent program of `jaxpr`, for tangents of the inputs in `nonzero`.

    Outputs marked in `force` have a tangent in any case, instantiated as zeros if necessary.
    """
    primal_builder = Builder(jaxpr.name)
    with active(primal_builder):
        primals = [primal_builder.input(a) for a in jaxpr.in_avals]
        outs, tangent, residuals, nonzero_out = _linearize(jaxpr, nonzero, force, primals)
        new, sources = locate_residuals(primal_builder, [*primals, *outs], residuals)
        primal, _ = primal_builder.finish([*outs, *new])
    return Linearized(primal, close_over(tangent), nonzero_out, sources)


def _linearize(
    jaxpr: Jaxpr, nonzero: Mask, force: Mask, primals: Values
) -> tuple[list[Any], Jaxpr, list[Any], tuple[bool, ...]]:
    tangent_builder = TangentBuilder(jaxpr.name)
    with active(tangent_builder):
        tangents = [
            tangent_builder.input(tangent_aval(a))
            for a, nz in zip(jaxpr.in_avals, nonzero, strict=True)
            if nz
        ]
        everywhere = with_symbolic_zeros(jaxpr, nonzero, tangents)
        outs, found = push_forward(jaxpr, primals, everywhere, "linearize", _part_equation)
        out_tangents = instantiate_marked(found, force)
        tangent, residuals = tangent_builder.finish([t for t in out_tangents if not is_zero(t)])
    return outs, tangent, residuals, tuple(not is_zero(t) for t in out_tangents)


def _part_equation(eqn: Equation, known: list[Any], given: list[Any], notes: list[Any]) -> Any:
    target: Any = builder()
    for tangent in given:
        if type(tangent) is not Tracer or tangent.builder is not target:  # a constant, for the primal program
            return None
    once = rewrite_once_per_kind(linearize, eqn, notes)
    if once is None:
        return None
    place = derived("linearize", eqn)
    results = target.parent.inline(once.primal, known, place)
    values = known + results
    residuals = [values[i] for i in once.sources]
    return results, scatter_where(once.nonzero_out, target.inline(once.tangent, residuals + given, place))
