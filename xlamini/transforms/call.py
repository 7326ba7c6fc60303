"""The `jit` primitive: a call of a jaxpr.

Every rewrite of a call is a call of the rewritten jaxpr. As rewrites are remembered on the jaxpr, a function that is
called many times is differentiated, batched and lowered once.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Axis
from xlamini.core.tangents import is_linear
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.transpose import transpose
from xlamini.transforms.higher_order import (
    HigherOrder,
    chosen,
    given,
    inverse,
    merged,
    nonzero_of,
    with_none,
    with_zeros,
)


class Call(HigherOrder):
    """A call; the params besides `jaxpr` are passed on to the calls that the rewrites make."""

    name = "jit"
    called = "jaxpr"
    shares_names = True

    def shape_rule(self, *avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return jaxpr.out_avals

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
        pushed, nonzero_out = jvp(jaxpr, nonzero_of(tangents))
        outs = self.bind(*primals, *given(tangents), jaxpr=pushed, **params)
        count = len(jaxpr.outvars)
        return outs[:count], with_zeros(jaxpr.out_avals, nonzero_out, outs[count:])

    def transpose(self, cts: Sequence[Any], *operands: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
        linear = tuple(is_linear(x) for x in operands)
        backward, nonzero_out = transpose(jaxpr, linear, nonzero_of(cts))
        outs = self.bind(*chosen(operands, inverse(linear)), *given(cts), jaxpr=backward, **params)
        return with_none(linear, with_none(nonzero_out, outs))

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, **params: Any
    ) -> Any:
        batched, out_dims = batch(jaxpr, axis, tuple(dims))
        return self.bind(*operands, jaxpr=batched, **params), out_dims

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr, name: str) -> Any:
        return ctx.call(jaxpr, operands, name)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
        lin = linearize(jaxpr, nonzero_of(tangents))
        results = self.bind(*primals, jaxpr=lin.primal, **params)
        outs, residuals = lin.parted(primals, results)
        out_tangents = self.bind(*residuals, *given(tangents), jaxpr=lin.tangent, **params)
        return outs, with_zeros(jaxpr.out_avals, lin.nonzero_out, out_tangents)

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
        parted = partial_eval(jaxpr, tuple(unknown))
        known = chosen(operands, inverse(unknown))
        outs, residuals = parted.parted(known, self.bind(*known, jaxpr=parted.known, **params))
        later = self.bind(*residuals, *chosen(operands, unknown), jaxpr=parted.unknown, **params)
        return merged(parted.unknown_out, later, outs)

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        jaxpr, used_inputs = dce(params["jaxpr"], tuple(used))
        return list(used_inputs), list(used), {**params, "jaxpr": jaxpr}

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        jaxpr = params["jaxpr"]
        return [*jaxpr.consts, *operands], {**params, "jaxpr": close_over(jaxpr)}

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"name": params["name"], **super().shown_params(params)}


jit_p = Call()
