"""The primitive `custom_lin`: the linear map that the derivative of a custom_vjp function is.

    (residuals, tangents) -> tangents of the outputs; all it can do is be transposed, by bwd
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from xlamini.core.avals import ShapedArray
from xlamini.core.primitive import Axis, Primitive
from xlamini.core.tangents import is_differentiable, tangent_aval
from xlamini.core.tracer import aval_of
from xlamini.interpreters.batch import batched_aval
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.collectives.reductions import psum_p
from xlamini.primitives.collectives.varying import varying_along
from xlamini.primitives.tangent_ops import instantiated
from xlamini.staging.call.higher_order import chosen, given, inverse, nonzero_of, with_none, with_zeros
from xlamini.transforms.custom.vjp_rules import Backward, BatchedBackward, ClosedBackward, Forward, Pulled


def linear_map(
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
    pure = False
    casts = True  # a tangent that devices share stays one, so that its cotangent is theirs together
    lacks: Mapping[str, str] = {"lower": "only its transpose is known"}

    def shape_rule(self, *avals: ShapedArray, out_avals: Sequence[ShapedArray], **params: Any) -> list[ShapedArray]:
        return list(out_avals)

    def varying(self, vma: frozenset[Any], params: dict[str, Any]) -> None:
        return None

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
        every = chosen(with_none(pulled.nonzero, found), inverse(in_zeros))
        return [None] * num_res + [summed(ct, x) for ct, x in zip(every, operands[num_res:], strict=True)]

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> Any:
        count = params["num_res"]
        found = iter(dims[count:])
        own = tuple(0 if zero else next(found) for zero in params["in_zeros"])
        bwd = BatchedBackward(params["bwd"], axis, tuple(dims[:count]), own)
        out_avals = tuple(batched_aval(a, axis, 0) for a in params["out_avals"])
        outs = self.bind(*operands, **{**params, "bwd": bwd, "out_avals": out_avals})
        return outs, [0] * len(outs)

    def lower(self, ctx: Any, *operands: Any, bwd: Backward, **params: Any) -> NoReturn:
        source = ctx.eqn.provenance.source
        raise _no_forward_mode(bwd, f", called at {source}," if source else "")

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        shown = {**params, "in_zeros": list(params["in_zeros"]), "symbolic_zeros": params["bwd"].symbolic_zeros}
        return {k: v for k, v in sorted(shown.items()) if k != "out_avals"}


def summed(ct: Any, x: Any) -> Any:
    """A cotangent as the operand needs it: where devices share that, and the rule gave each its own, their sum."""
    if ct is None:
        return None
    more = aval_of(ct).vma - x.aval.vma
    total = psum_p.bind(ct, axes=tuple(sorted(more, key=str)), axis_index_groups=None) if more else ct
    return varying_along(total, x.aval.vma)


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


custom_lin_p = CustomLin()
