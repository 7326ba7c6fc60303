"""The derivative of a custom_vjp function as a linear map that only its transpose, the rule bwd, defines.

    custom_lin: (residuals, tangents) -> tangents of the outputs
"""
from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any, NoReturn

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Jaxpr,
    Params,
    Primitive,
    ShapedArray,
    Values,
    aval_of,
    close_over,
    is_differentiable,
    once,
    tangent_aval,
)
from xlamini.core.errors import JAXTypeError
from xlamini.core.jaxpr import rederived
from xlamini.core.primitive import IS_VMA_CAST
from xlamini.core.ref_cells import RefEscaped
from xlamini.core.state import state
from xlamini.interpreters.batch import batched_aval
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.transpose import WRITTEN
from xlamini.primitives import instantiated
from xlamini.primitives.collectives.reductions import psum_p
from xlamini.primitives.collectives.varying import varying_along
from xlamini.staging import Mask, chosen, given, inverse, merged, nonzero_of, with_none, with_zeros
from xlamini.transforms.custom.call_site import is_concrete, weakly_typed_as
from xlamini.transforms.custom.rule_contract import Contract
from xlamini.transforms.custom.vjp_rule import Backward, BackwardRule, BatchedBackward


def linear_map(
    bwd: BackwardRule, residuals: Values, tangents: Values, out_avals: Avals
) -> list[Any]:
    """The tangents of the outputs."""
    differentiable = [is_differentiable(a) for a in out_avals]
    if not bwd.symbolic_zeros:
        residuals, bwd = _traced_now(residuals, bwd, (True,) * sum(differentiable))
    outs = custom_lin_p.bind(
        *residuals,
        *given(tangents),
        bwd=bwd,
        in_zeros=inverse(nonzero_of(tangents)),
        num_res=len(residuals),
        out_avals=tuple(map(tangent_aval, chosen(out_avals, differentiable))),
    )
    return with_zeros(out_avals, differentiable, outs)


def _traced_now(residuals: Values, bwd: BackwardRule, nonzero: Mask) -> tuple[Values, BackwardRule]:
    """The rule as a jaxpr, and its residuals, while the tracers that it closes over can be captured.

    A rule that asks for the value of a cotangent runs in the backward pass, which has it outside of traced functions.
    """
    try:
        jaxpr, found = bwd.traced(nonzero)
    except JAXTypeError as error:
        if getattr(bwd, "values", None) is None:
            raise
        return residuals, ReadingBackward(bwd, error)
    except RefEscaped as touched:
        return residuals, WritingBackward(bwd, nonzero, touched)
    return [*jaxpr.consts, *residuals], TracedBackward(bwd.contract, Backward(close_over(jaxpr), found))


class ReadingBackward(BackwardRule):
    """A backward rule that reads the values of cotangents; `error` says what it needs where there are none."""

    reads_values = True

    def __init__(self, rule: BackwardRule, error: Exception):
        self.rule, self.error, self.contract = rule, error, rule.contract

    def traced(self, nonzero: Mask, cts: Values = ()) -> Backward:
        if not (cts and is_concrete(cts)):
            raise self.error
        return self.rule.traced(nonzero, cts)


class WritingBackward(BackwardRule):
    """A backward rule that writes refs. It runs in each backward pass, whose program returns their final values."""

    def __init__(self, rule: Any, nonzero: Mask, touched: RefEscaped):
        self.rule, self.contract, self.cells = rule, rule.contract, (touched.cell,)
        while True:
            try:
                rule.writing(nonzero, (), self.cells)
                return
            except RefEscaped as another:
                if another.cell in self.cells:
                    raise
                self.cells = (*self.cells, another.cell)

    def cotangents(self, operands: Values, cts: Values) -> Values:
        """The cotangents of the arguments, None for zeros; what the rule wrote is noted for the end of the pass."""
        written = state.builder and state.builder.memo.get(WRITTEN)
        if written is None:
            raise JAXTypeError(
                f"{self.contract} writes a ref, in a call that is part of a jitted function, a loop or a branch of the "
                "function that is differentiated; make the call outside of these, or return the value"
            )
        nonzero = nonzero_of(cts)
        values = [written[cell] if cell in written else cell.read() for cell in self.cells]
        jaxpr, found = self.rule.writing(nonzero, given(cts), self.cells)
        outs = evaluate(jaxpr, [*operands, *given(cts), *values])
        count = len(outs) - len(self.cells)
        written.update(zip(self.cells, outs[count:], strict=True))
        return with_none(found, outs[:count])


class TracedBackward(BackwardRule):
    """A backward rule as a jaxpr, for cotangents of all outputs; the values it captured are the first residuals."""

    def __init__(self, contract: Contract, backward: Backward):
        self.contract, self.backward = contract, backward

    def traced(self, nonzero: Mask, cts: Values = ()) -> Backward:
        return self.backward


class NoForwardMode(BackwardRule):
    """The rule of the derivative of a linear map of which only the transpose is given: an error once it is used."""

    def __init__(self, contract: Contract):
        self.contract = contract

    def traced(self, nonzero: Mask, cts: Values = ()) -> Backward:
        raise _no_forward_mode(self, "")


class CustomLin(Primitive):
    """A linear map of the operands after the first `num_res`, given by its transpose `bwd`.

    `in_zeros` marks the arguments without tangent; `out_avals` are the types of the tangents that come out.
    """

    name = "custom_lin"
    multiple_results = True
    traits = IS_VMA_CAST  # a tangent that devices share stays shared, so that its cotangent is summed over them
    lacks: Mapping[str, str] = {"lower": "only its transpose is known"}

    def shape_rule(self, *avals: ShapedArray, out_avals: Avals, **params: Any) -> list[ShapedArray]:
        return list(out_avals)

    def varying(self, vma: frozenset[Any], params: Params) -> None:
        return None

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        """Defers the error until the tangent is used."""
        moving = given(tangents)
        deferred = {"bwd": NoForwardMode(params["bwd"].contract), "num_res": 0, "in_zeros": (False,) * len(moving)}
        return self.bind(*primals, **params), self.bind(*moving, **{**params, **deferred})

    def transpose(
        self, cts: Values, *operands: Any, bwd: BackwardRule, in_zeros: Mask, num_res: int, **params: Any
    ) -> Values:
        out_cts = list(cts) if bwd.symbolic_zeros else list(map(instantiated, cts))
        if isinstance(bwd, WritingBackward):
            moving = chosen(bwd.cotangents(operands[:num_res], out_cts), inverse(in_zeros))
            return [None] * num_res + [_summed(ct, x) for ct, x in zip(moving, operands[num_res:], strict=True)]
        jaxpr, nonzero = bwd.traced(nonzero_of(out_cts), given(out_cts))
        given_in = weakly_typed_as(jaxpr, [*operands[:num_res], *given(out_cts)])
        in_cts = with_none(nonzero, evaluate(_backward(jaxpr), given_in))
        moving = chosen(in_cts, inverse(in_zeros))
        return [None] * num_res + [_summed(ct, x) for ct, x in zip(moving, operands[num_res:], strict=True)]

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        count = params["num_res"]
        arg_dims = tuple(merged(params["in_zeros"], repeat(0), dims[count:]))
        bwd = BatchedBackward(params["bwd"], axis, tuple(dims[:count]), arg_dims)
        out_avals = tuple(batched_aval(a, axis, 0) for a in params["out_avals"])
        outs = self.bind(*operands, **{**params, "bwd": bwd, "out_avals": out_avals})
        return outs, [0] * len(outs)

    def lower(self, ctx: Any, *operands: Any, bwd: BackwardRule, **params: Any) -> NoReturn:
        source = ctx.eqn.provenance.source
        raise _no_forward_mode(bwd, f", called at {source}," if source else "")

    def shown_params(self, params: Params) -> Params:
        shown = {**params, "in_zeros": list(params["in_zeros"]), "symbolic_zeros": params["bwd"].symbolic_zeros}
        return {k: v for k, v in sorted(shown.items()) if k != "out_avals"}


@once
def _backward(jaxpr: Jaxpr) -> Jaxpr:
    """The program of a rule, whose equations say that a transpose runs them; memoised on the jaxpr."""
    return jaxpr.replace(eqns=[rederived("transpose", eqn) for eqn in jaxpr.eqns])


def _summed(ct: Any, x: Any) -> Any:
    """The cotangent of an operand that devices share: the sum of those that the rule gave on each device."""
    if ct is None:
        return None
    more = aval_of(ct).vma - x.aval.vma
    total = psum_p.bind(ct, axes=tuple(sorted(more, key=str)), axis_index_groups=None) if more else ct
    return varying_along(total, x.aval.vma)


def _no_forward_mode(bwd: BackwardRule, where: str) -> TypeError:
    return TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: the one whose backward rule is "
        f"{bwd!r}{where} as that rule is all that is known of its derivative; add a rule for forward mode with "
        ".defjvp(rule), or write the function with custom_jvp, which serves both modes"
    )


custom_lin_p = CustomLin()
