"""The primitives of `custom_vjp`: a call with rules of its own, and the linear map that its derivative is.

    custom_vjp_call  the function as a jaxpr, with the rules fwd and bwd, and perhaps one for jvp
    custom_lin       (residuals, tangents) -> tangents of the outputs; all it can do is be transposed, by bwd
"""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Axis, Primitive
from xlamini.core.tangents import Zero, is_differentiable, is_linear, tangent_aval
from xlamini.interpreters.batch import batch, batched_aval
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.tangent_ops import instantiated
from xlamini.transforms.custom.remat_opt import evaluate_forward
from xlamini.transforms.custom.rules import captured_names
from xlamini.transforms.custom.vjp_rules import (
    Backward,
    BatchedBackward,
    BatchedForward,
    ClosedBackward,
    Forward,
    Pulled,
)
from xlamini.transforms.higher_order import (
    HigherOrder,
    chosen,
    given,
    inverse,
    nonzero_of,
    with_none,
    with_zeros,
)


class CustomVJPCall(HigherOrder):
    """A call whose derivative is what the user's rules say.

    Its operands are the values that the function captured, named in `captured`, then `num_closed` values that its rules
    close over, then the arguments. `fwd` or `jvp` is None where there is no such rule.
    """

    name = "custom_vjp_call"
    called = "call_jaxpr"

    def shape_rule(self, *avals: ShapedArray, call_jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return call_jaxpr.out_avals

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        """By the rule for jvp; if there is none a linear map is left, which nobody can evaluate."""
        if params["jvp"] is None:
            return self.linearize(primals, tangents, **params)
        start = _check_captured(tangents, **params)
        return params["jvp"].pushed(primals[start:], tangents[start:])

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        start = _check_captured(tangents, **params)
        if params["fwd"] is None:
            return params["jvp"].linearized(primals[start:], tangents[start:])
        end, out_avals = start + params["num_closed"], params["call_jaxpr"].out_avals
        perturbed = nonzero_of(tangents[end:])
        if not any(perturbed):
            return self.bind(*primals, **params), [Zero(tangent_aval(a)) for a in out_avals]
        forward = params["fwd"].traced(perturbed)
        _check_closed(forward, tangents[start:end], params["name"])
        results = self._forward(forward, primals, start, params)
        outs, residuals = results[: forward.count], results[forward.count :]
        return outs, _linear_map(forward, residuals, tangents[end:], out_avals)

    def _forward(
        self, forward: Forward, primals: Sequence[Any], start: int, params: dict[str, Any]
    ) -> list[Any]:
        """Outputs and residuals."""
        if not params["optimize_remat"]:
            return evaluate(forward.jaxpr, [*forward.captured, *primals[start:]])
        call = functools.partial(self.bind, **params)
        return evaluate_forward(forward, call, primals[:start], primals[start:])

    def transpose(self, cts: Sequence[Any], *operands: Any, call_jaxpr: Jaxpr, **params: Any) -> list[Any]:
        """The transpose of the function itself, as nobody has asked for a derivative."""
        linear = tuple(is_linear(x) for x in operands)
        backward, nonzero_out = transpose(call_jaxpr, linear, nonzero_of(cts))
        outs = evaluate(backward, [*chosen(operands, inverse(linear)), *given(cts)])
        return with_none(linear, with_none(nonzero_out, outs))

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, call_jaxpr: Jaxpr, **params: Any
    ) -> Any:
        batched, out_dims = batch(call_jaxpr, axis, tuple(dims), (True,) * len(call_jaxpr.outvars))
        own = tuple(dims[len(params["captured"]) :])
        fwd = None if params["fwd"] is None else BatchedForward(params["fwd"], axis, own)
        jvp = None if params["jvp"] is None else params["jvp"].batched(axis, own)
        return self.bind(*operands, **{**params, "call_jaxpr": batched, "fwd": fwd, "jvp": jvp}), out_dims

    def lower(self, ctx: Any, *operands: Any, call_jaxpr: Jaxpr, name: str, **params: Any) -> Any:
        return ctx.body(call_jaxpr, operands, name)

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        jaxpr = params["call_jaxpr"]
        captured = (*captured_names(None, jaxpr.consts), *params["captured"])
        return [*jaxpr.consts, *operands], {**params, "call_jaxpr": close_over(jaxpr), "captured": captured}

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        hidden = ("captured", "jvp", "num_closed", "optimize_remat")
        return {"name": params["name"], **{k: v for k, v in sorted(params.items()) if k not in hidden}}


def _check_captured(tangents: Sequence[Any], *, captured: Sequence[str], name: str, **params: Any) -> int:
    """How many values the function captured; an error if one of them is being differentiated."""
    moving = chosen(captured, nonzero_of(tangents[: len(captured)]))
    if moving:
        raise _closes_over(name, moving[0])
    return len(captured)


def _check_closed(forward: Forward, tangents: Sequence[Any], name: str) -> None:
    """An error if the outputs depend on a value that fwd closes over and that is being differentiated."""
    if given(tangents):
        residuals = len(forward.jaxpr.outvars) - forward.count
        _, used = dce(forward.jaxpr, (True,) * forward.count + (False,) * residuals)
        moving = given(chosen(tangents, used[len(forward.captured) :][: len(tangents)]))
        if moving:
            value = f"a value of type {moving[0].aval.str_short(short_dtypes=False)}"
            raise _closes_over(f"the fwd rule of {name}", value)


def _closes_over(what: str, value: str) -> UnexpectedTracerError:
    return UnexpectedTracerError(
        f"custom_vjp: {what} closes over {value}, which is being differentiated, but the rules give derivatives in the "
        "arguments alone; make the value an argument (xlamini.closure_convert finds such values), or hold it fixed "
        "with lax.stop_gradient"
    )


def _linear_map(
    forward: Forward, residuals: Sequence[Any], tangents: Sequence[Any], out_avals: Sequence[ShapedArray]
) -> list[Any]:
    """Tangents of the outputs, as a map that only its transpose defines."""
    differentiable = [is_differentiable(a) for a in out_avals]
    bwd = forward.backward
    if not bwd.symbolic_zeros:
        # Traced here, where tracers that it closes over are still to be found.
        pulled = bwd.traced((True,) * sum(differentiable))
        residuals = [*pulled.captured, *residuals]
        bwd = ClosedBackward(pulled.jaxpr, pulled.nonzero, repr(bwd))
    outs = custom_lin_p.bind(
        *residuals,
        *given(tangents),
        bwd=bwd,
        in_zeros=inverse(nonzero_of(tangents)),
        num_res=len(residuals),
        out_avals=tuple(map(tangent_aval, chosen(out_avals, differentiable))),
    )
    return with_zeros(out_avals, differentiable, outs)


class CustomLin(Primitive):
    """A linear map of the operands after the first `num_res`, given by its transpose `bwd`.

    `in_zeros` marks the arguments without tangent; `out_avals` are the types of the tangents that come out.
    """

    name = "custom_lin"
    multiple_results = True
    lacks: Mapping[str, str] = {"lower": "only its transpose is known"}

    def shape_rule(self, *avals: ShapedArray, out_avals: Sequence[ShapedArray], **params: Any) -> list[ShapedArray]:
        return list(out_avals)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        """Forward mode again: it may be that nobody needs it, so the refusal waits."""
        moving = given(tangents)
        refusal = {**params, "bwd": Refusal(params["bwd"]), "num_res": 0, "in_zeros": (False,) * len(moving)}
        return self.bind(*primals, **params), self.bind(*moving, **refusal)

    def transpose(
        self, cts: Sequence[Any], *operands: Any, bwd: Backward, in_zeros: Sequence[bool], num_res: int, **params: Any
    ) -> list[Any]:
        given_cts = list(cts) if bwd.symbolic_zeros else list(map(instantiated, cts))
        pulled = bwd.traced(nonzero_of(given_cts))
        found = evaluate(pulled.jaxpr, [*pulled.captured, *operands[:num_res], *given(given_cts)])
        every = with_none(pulled.nonzero, found)
        return [None] * num_res + chosen(every, inverse(in_zeros))

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> Any:
        count = params["num_res"]
        found = iter(dims[count:])
        own = tuple(0 if zero else next(found) for zero in params["in_zeros"])
        bwd = BatchedBackward(params["bwd"], axis, tuple(dims[:count]), own)
        out_avals = tuple(batched_aval(a, axis.size, 0) for a in params["out_avals"])
        outs = self.bind(*operands, **{**params, "bwd": bwd, "out_avals": out_avals})
        return outs, [0] * len(outs)

    def lower(self, ctx: Any, *operands: Any, bwd: Backward, **params: Any) -> NoReturn:
        source = ctx.eqn.provenance.source
        raise _no_forward_mode(bwd, f", called at {source}," if source else "")

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        shown = {**params, "in_zeros": list(params["in_zeros"]), "symbolic_zeros": params["bwd"].symbolic_zeros}
        return {k: v for k, v in sorted(shown.items()) if k != "out_avals"}


class Refusal(Backward):
    """Stands for the derivative of a linear map of which only the transpose is known."""

    def __init__(self, bwd: Backward):
        self.bwd = bwd

    def __repr__(self) -> str:
        return repr(self.bwd)

    def traced(self, nonzero: Sequence[bool]) -> Pulled:
        raise _no_forward_mode(self.bwd, "")


def _no_forward_mode(bwd: Backward, where: str) -> TypeError:
    return TypeError(
        f"custom_vjp: forward mode (jvp, jacfwd, linearize) does not apply to the function whose backward rule is "
        f"{bwd!r}{where} as that rule is all that is known of its derivative; add a rule for forward mode with "
        ".defjvp(rule), or write the function with custom_jvp, which serves both modes"
    )


custom_vjp_call_p = CustomVJPCall()
custom_lin_p = CustomLin()
