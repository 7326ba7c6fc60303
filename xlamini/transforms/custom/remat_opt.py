"""remat_opt: a fwd rule that becomes the function itself where nobody wants its residuals.

Under `checkpoint` the forward pass keeps no residuals, so that a custom kernel which is fast because it makes none can
run there: dead-code elimination puts it in the place of the fwd rule.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Axis
from xlamini.core.tracer import aval_of, build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.staging.call.call import Call, jit_p
from xlamini.staging.call.call_rules import Run
from xlamini.transforms.custom.vjp_rules import Forward


def evaluate_forward(
    forward: Forward, call: Callable[..., list[Any]], captured: Sequence[Any], arguments: Sequence[Any]
) -> list[Any]:
    """Outputs and residuals of a forward rule, as an equation that also knows `call(*captured, *arguments)`."""
    first, own = len(forward.captured), len(forward.captured) + len(captured)
    operands = [*forward.captured, *captured, *arguments]
    avals = [aval_of(x) for x in operands]
    jaxpr, _ = build(lambda *xs: evaluate(forward.jaxpr, [*xs[:first], *xs[own:]]), avals, forward.jaxpr.name)
    primal, _ = build(lambda *xs: call(*xs[first:]), avals, forward.jaxpr.name)
    return remat_opt_p.bind(*operands, jaxpr=jaxpr, primal=primal, name=jaxpr.name)


class RematOpt(Call):
    """A call of `jaxpr`, whose first results are those of `primal`, on the same operands."""

    name = "remat_opt"
    shares_names = False

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, **params: Any
    ) -> Any:
        count = len(jaxpr.outvars)
        batched, out_dims = batch(jaxpr, axis, tuple(dims), (True,) * count)
        primal, _ = batch(params["primal"], axis, tuple(dims), (True,) * len(params["primal"].outvars))
        return self.bind(*operands, **{**params, "jaxpr": batched, "primal": primal}), out_dims

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        count = len(params["primal"].outvars)
        if any(used[count:]):
            return None
        primal, used_inputs = dce(params["primal"], tuple(used[:count]))
        return list(used_inputs), list(used), {**params, "jaxpr": primal, "primal": primal}

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        jaxpr, primal = params["jaxpr"], params["primal"]
        first, own = len(jaxpr.consts), len(jaxpr.consts) + len(primal.consts)
        every = [*jaxpr.consts, *primal.consts, *operands]
        avals = [aval_of(x) for x in every]
        whole = close_over(jaxpr), close_over(primal)
        taking_all = {
            "jaxpr": build(lambda *xs: evaluate(whole[0], [*xs[:first], *xs[own:]]), avals, jaxpr.name)[0],
            "primal": build(lambda *xs: evaluate(whole[1], xs[first:]), avals, primal.name)[0],
        }
        return every, {**params, **taking_all}

    def run(self, params: dict[str, Any]) -> Run:
        """Derivatives are those of a call of `jaxpr` alone."""
        return jit_p.run({"name": params["name"]})


remat_opt_p = RematOpt()
