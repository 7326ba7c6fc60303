"""Linearize: one pass that parts a program into its values and the linear map of its tangents.

    linearize(jaxpr, nonzero)  ->  primal:  inputs -> (outputs, new residuals)
                                   tangent: (residuals, tangents) -> tangents of outputs

The derivative rules run under a `TangentBuilder`: what depends on a tangent lands in it, the rest in the primal
builder, and what crosses from one to the other is, by definition, a residual. A residual that is an input or an output
of `primal` already is not returned a second time, because a program that returns its input copies it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Atom, Jaxpr, close_over
from xlamini.core.primitive import Primitive
from xlamini.core.rewriting import rewrite
from xlamini.core.tangents import is_zero, tangent_aval
from xlamini.core.tracer import Builder, TangentBuilder, Tracer, active
from xlamini.interpreters.jvp import push_forward, spread


class Linearized(NamedTuple):
    """`primal` returns the outputs and then new residuals; `tangent` takes all residuals first.

    `sources` says for each residual where it stands among the inputs and results of `primal`.
    """

    primal: Jaxpr
    tangent: Jaxpr
    nonzero_out: tuple[bool, ...]
    sources: tuple[int, ...]

    @property
    def num_residuals(self) -> int:
        return len(self.sources)

    def parted(self, inputs: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs and the residuals, from the inputs and results of `primal`."""
        known = [*inputs, *results]
        return list(results[: len(self.nonzero_out)]), [known[i] for i in self.sources]


@rewrite
def linearize(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> Linearized:
    """The two halves of `jaxpr`, for the inputs in `nonzero` having tangents."""
    primal_builder = Builder(jaxpr.name)
    with active(primal_builder):
        primals = [primal_builder.input(a) for a in jaxpr.in_avals]
        outs, tangent, residuals, nonzero_out = _part(jaxpr, nonzero, primals)
        new, sources = _sources(*(list(map(primal_builder.atom, xs)) for xs in ([*primals, *outs], residuals)))
        primal, _ = primal_builder.finish([*outs, *(Tracer(primal_builder, v, v.aval) for v in new)])
    return Linearized(primal, close_over(tangent), nonzero_out, sources)


def _sources(known: Sequence[Atom], residuals: Sequence[Any]) -> tuple[list[Any], tuple[int, ...]]:
    """The residuals that are not among the known values, and where each residual stands among both together."""
    places = {atom: i for i, atom in reversed(list(enumerate(known)))}
    new = [r for r in residuals if r not in places]
    places.update((r, len(known) + i) for i, r in enumerate(new))
    return new, tuple(places[r] for r in residuals)


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
