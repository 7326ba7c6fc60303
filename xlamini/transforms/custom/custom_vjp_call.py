"""The primitive of `custom_vjp`: a call with the rules fwd and bwd, and perhaps one for jvp."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from xlamini.core.jaxpr import Jaxpr
from xlamini.core.primitive import Axis
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging.call.higher_order import given, nonzero_of, with_zeros
from xlamini.transforms.custom.custom_lin import linear_map
from xlamini.transforms.custom.remat_opt import evaluate_forward
from xlamini.transforms.custom.ruled_call import RuledCall, check_captured, closes_over
from xlamini.transforms.custom.vjp_rules import BatchedForward, Forward


class CustomVJPCall(RuledCall):
    """A call whose derivative is what the user's rules say.

    Its operands are the values that the function captured, named in `captured`, then `num_closed` values that its rules
    close over, then the arguments. `fwd` or `jvp` is None where there is no such rule.
    """

    name = "custom_vjp_call"
    called = "call_jaxpr"
    hidden = ("captured", "jvp", "num_closed", "optimize_remat")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        """By the rule for jvp; if there is none a linear map is left, which nobody can evaluate."""
        if params["jvp"] is None:
            return self.linearize(primals, tangents, **params)
        start = check_captured("custom_vjp", tangents, params["captured"], params["name"])
        return params["jvp"].pushed(primals[start:], tangents[start:])

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, call_jaxpr: Jaxpr, **params: Any
    ) -> Any:
        batched, out_dims = batch(call_jaxpr, axis, tuple(dims), (True,) * len(call_jaxpr.outvars))
        own = tuple(dims[len(params["captured"]) :])
        fwd = None if params["fwd"] is None else BatchedForward(params["fwd"], axis, own)
        jvp = None if params["jvp"] is None else params["jvp"].batched(axis, own)
        return self.bind(*operands, **{**params, "call_jaxpr": batched, "fwd": fwd, "jvp": jvp}), out_dims

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        start = check_captured("custom_vjp", tangents, params["captured"], params["name"])
        if params["fwd"] is None:
            return params["jvp"].linearized(primals[start:], tangents[start:])
        end, out_avals = start + params["num_closed"], params["call_jaxpr"].out_avals
        perturbed = nonzero_of(tangents[end:])
        if not any(perturbed):
            return self.bind(*primals, **params), with_zeros(out_avals, [False] * len(out_avals), ())
        forward = params["fwd"].traced(perturbed)
        _check_closed(forward, tangents[start:end], params["name"])
        results = self._forward(forward, primals, start, params)
        outs, residuals = results[: forward.count], results[forward.count :]
        return outs, linear_map(forward, residuals, tangents[end:], out_avals)

    def _forward(
        self, forward: Forward, primals: Sequence[Any], start: int, params: dict[str, Any]
    ) -> list[Any]:
        """Outputs and residuals."""
        if not params["optimize_remat"]:
            return evaluate(forward.jaxpr, [*forward.captured, *primals[start:]])
        call = functools.partial(self.bind, **params)
        return evaluate_forward(forward, call, primals[:start], primals[start:])


custom_vjp_call_p = CustomVJPCall()


def _check_closed(forward: Forward, tangents: Sequence[Any], name: str) -> None:
    """An error if the outputs depend on a value that fwd closes over and that is being differentiated."""
    moving = given(tangents)
    if moving:
        rest = len(forward.jaxpr.invars) - len(forward.captured) - len(tangents)
        unknown = (*(False,) * len(forward.captured), *nonzero_of(tangents), *(False,) * rest)
        # not dce: a call of a custom_vjp function inside takes what its rules close over, used by its outputs or not
        if any(partial_eval(forward.jaxpr, unknown).unknown_out[: forward.count]):
            value = f"a value of type {moving[0].aval.str_short(short_dtypes=False)}"
            raise closes_over("custom_vjp", f"the fwd rule of {name}", value)
