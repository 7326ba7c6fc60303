"""Linearize: one pass that parts a program into its values and the linear map of its tangents.

    linearize(jaxpr, nonzero)  ->  primal:  inputs -> (outputs, residuals)
                                   tangent: (residuals, tangents) -> tangents of outputs

The derivative rules run under a `TangentBuilder`: what depends on a tangent lands in it, the rest in the primal builder, and
what crosses from one to the other is, by definition, a residual.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Primitive
from xlamini.core.rewriting import rewrite
from xlamini.core.tangents import is_zero, tangent_aval
from xlamini.core.tracer import Builder, TangentBuilder, active
from xlamini.interpreters.jvp import push_forward, spread


class Linearized(NamedTuple):
    """`primal` returns the outputs and then the residuals; `tangent` takes the residuals first."""

    primal: Jaxpr
    tangent: Jaxpr
    nonzero_out: tuple[bool, ...]

    @property
    def num_residuals(self) -> int:
        return len(self.primal.outvars) - len(self.nonzero_out)


@rewrite
def linearize(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> Linearized:
    """The two halves of `jaxpr`, for the inputs in `nonzero` having tangents."""
    primal_builder = Builder(jaxpr.name)
    with active(primal_builder):
        primals = [primal_builder.input(a) for a in jaxpr.in_avals]
        outs, tangent, residuals, nonzero_out = _part(jaxpr, nonzero, primals)
        primal, _ = primal_builder.finish([*outs, *residuals])
    return Linearized(primal, close_over(tangent), nonzero_out)


def _part(
    jaxpr: Jaxpr, nonzero: Sequence[bool], primals: Sequence[Any]
) -> tuple[list[Any], Jaxpr, list[Any], tuple[bool, ...]]:
    tangent_builder = TangentBuilder(jaxpr.name)
    with active(tangent_builder):
        tangents = [
            tangent_builder.input(tangent_aval(a))
            for a, nz in zip(jaxpr.in_avals, nonzero, strict=True)
            if nz
        ]
        everywhere = spread(jaxpr, nonzero, tangents)
        outs, out_tangents = push_forward(jaxpr, primals, everywhere, Primitive.linearize)
        tangent, residuals = tangent_builder.finish([t for t in out_tangents if not is_zero(t)])
    return outs, tangent, residuals, tuple(not is_zero(t) for t in out_tangents)
