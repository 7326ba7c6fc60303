"""The `jit` primitive: a call of a jaxpr.

Every rewrite of a call is a call of the rewritten jaxpr. As rewrites are remembered on the jaxpr, a function that is
called many times is differentiated, batched and lowered once.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Effects, Jaxpr
from xlamini.core.primitive import Axis, Cost, Primitive
from xlamini.core.tangents import Zero, is_linear, is_zero, tangent_aval
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.transpose import transpose


class Call(Primitive):
    name = "jit"
    multiple_results = True
    called = "jaxpr"

    def shape_rule(self, *avals: ShapedArray, jaxpr: Jaxpr, name: str) -> list[ShapedArray]:
        return jaxpr.out_avals

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, name: str) -> Any:
        nonzero = tuple(not is_zero(t) for t in tangents)
        pushed, nonzero_out = jvp(jaxpr, nonzero)
        given = [t for t in tangents if not is_zero(t)]
        outs = self.bind(*primals, *given, jaxpr=pushed, name=name)
        count = len(jaxpr.outvars)
        return outs[:count], _with_zeros(jaxpr, nonzero_out, outs[count:])

    def transpose(self, cts: Sequence[Any], *operands: Any, jaxpr: Jaxpr, name: str) -> list[Any]:
        linear = tuple(is_linear(x) for x in operands)
        nonzero_ct = tuple(not is_zero(ct) for ct in cts)
        backward, nonzero_out = transpose(jaxpr, linear, nonzero_ct)
        known = [x for x in operands if not is_linear(x)]
        given = [ct for ct in cts if not is_zero(ct)]
        outs = iter(self.bind(*known, *given, jaxpr=backward, name=name))
        found = iter([next(outs) if nz else None for nz in nonzero_out])
        return [next(found) if is_lin else None for is_lin in linear]

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, name: str
    ) -> Any:
        batched, out_dims = batch(jaxpr, axis, tuple(dims))
        return self.bind(*operands, jaxpr=batched, name=name), out_dims

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr, name: str) -> Any:
        return ctx.call(jaxpr, operands, name)

    def cost(self, *avals: ShapedArray, jaxpr: Jaxpr, name: str) -> Cost:
        each = [e.primitive.cost(*[a.aval for a in e.invars], **e.params) for e in jaxpr.eqns]
        return Cost(sum(c.flops for c in each), sum(c.bytes for c in each))

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, name: str) -> Any:
        lin = linearize(jaxpr, tuple(not is_zero(t) for t in tangents))
        outs, residuals = lin.parted(primals, self.bind(*primals, jaxpr=lin.primal, name=name))
        given = [t for t in tangents if not is_zero(t)]
        out_tangents = self.bind(*residuals, *given, jaxpr=lin.tangent, name=name)
        return outs, _with_zeros(jaxpr, lin.nonzero_out, out_tangents)

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], *, jaxpr: Jaxpr, name: str) -> Any:
        parted = partial_eval(jaxpr, tuple(unknown))
        known = [x for x, u in zip(operands, unknown, strict=True) if not u]
        later = [x for x, u in zip(operands, unknown, strict=True) if u]
        now = self.bind(*known, jaxpr=parted.known, name=name)
        count = len(parted.unknown_out) - sum(parted.unknown_out)
        known_outs, residuals = iter(now[:count]), now[count:]
        later_outs = iter(self.bind(*residuals, *later, jaxpr=parted.unknown, name=name))
        return [next(later_outs) if u else next(known_outs) for u in parted.unknown_out]

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        jaxpr, used_inputs = dce(params["jaxpr"], tuple(used))
        return list(used_inputs), list(used), {**params, "jaxpr": jaxpr}

    def effects(self, params: dict[str, Any]) -> Effects:
        return params["jaxpr"].effects

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"name": params["name"], **super().shown_params(params)}

    def named_axes(self, params: dict[str, Any]) -> tuple[Any, ...]:
        return tuple({a for e in params["jaxpr"].eqns for a in e.primitive.named_axes(e.params)})


def _with_zeros(jaxpr: Jaxpr, nonzero: Sequence[bool], tangents: Sequence[Any]) -> list[Any]:
    """A tangent for every output: the given ones, and symbolic zeros."""
    given = iter(tangents)
    return [
        next(given) if nz else Zero(tangent_aval(v.aval))
        for v, nz in zip(jaxpr.outvars, nonzero, strict=True)
    ]


jit_p = Call()
