"""The `jit` primitive: a call of a jaxpr.

Each rewrite of a call is a call of the rewritten jaxpr. Rewrites are memoised on the jaxpr, so a function that is
called many times is differentiated, batched and lowered once.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from xlamini.core import Axis, CallLike, Dims, Jaxpr, Params, ShapedArray, Values, close_over
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.discharge import discharge, of_values
from xlamini.staging.call.call_rules import Run, call_jvp, call_linearize, call_partial_eval, call_transpose
from xlamini.staging.call.higher_order import HigherOrder, chosen


class Call(CallLike, HigherOrder):
    """A call of a jaxpr; its other params are passed on to the rewritten calls."""

    name = "jit"
    called = "jaxpr"
    shares_names = True

    def shape_rule(self, *avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return jaxpr.out_avals

    def jvp(self, primals: Values, tangents: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        return call_jvp(self.run(params), jaxpr, primals, tangents)

    def transpose(self, cts: Values, *operands: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
        return call_transpose(self.run(params), jaxpr, cts, operands)

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, jaxpr: Jaxpr, **params: Any
    ) -> Any:
        batched, out_dims = batch(jaxpr, axis, tuple(dims))
        return self.run(params)(batched, operands), out_dims

    def discharge(self, refs: Sequence[Any], operands: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        changes = of_values(jaxpr).changes
        outs = self.bind(*operands, jaxpr=discharge(jaxpr), **params)
        return outs[sum(changes) :], dict(zip(chosen(refs, changes), outs, strict=False))

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr, name: str, **params: Any) -> Any:
        return ctx.call(jaxpr, operands, name)

    def checked(self, errors: frozenset[str], operands: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        from xlamini.staging.call.check import checked_call  # for those who check only

        return checked_call(self.run(params), errors, jaxpr, operands)

    def linearize(self, primals: Values, tangents: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        return call_linearize(self.run(params), jaxpr, primals, tangents)

    def partial_eval(self, unknown: Sequence[bool], operands: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        return call_partial_eval(self.run(params), jaxpr, unknown, operands)

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        jaxpr, used_inputs = dce(params["jaxpr"], tuple(used))
        return list(used_inputs), list(used), {**params, "jaxpr": jaxpr}

    def with_captured(self, operands: Values, params: Params) -> Any:
        jaxpr = params["jaxpr"]
        return [*jaxpr.consts, *operands], {**params, "jaxpr": close_over(jaxpr)}

    def shown_params(self, params: Params) -> Params:
        return {"name": params["name"], **super().shown_params(params)}

    def run(self, params: Params) -> Run:
        """The function with which rules call rewritten jaxprs."""
        return lambda jaxpr, operands: self.bind(*operands, jaxpr=jaxpr, **params)


jit_p: Final = Call()


class WholeCall(Call):
    """A call that is one operation where a program runs; what rewrites derive from it are ordinary calls."""

    shares_names = False

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        """The operation gives all results."""

    def run(self, params: Params) -> Run:
        return lambda jaxpr, operands: jit_p.bind(*operands, jaxpr=jaxpr, name=params["name"])
