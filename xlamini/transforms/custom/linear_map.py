"""The derivative of a custom_vjp function as a linear map that its transpose, the rule bwd, defines.

    custom_lin: (primals, residuals, tangents) -> tangents of the outputs

Only with a rule for forward mode does it have the primals, and can it be applied.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, NoReturn

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Params,
    Primitive,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    close_over,
    is_differentiable,
    tangent_aval,
)
from xlamini.core.errors import JAXTypeError, UnexpectedTracerError
from xlamini.core.program.ref_cells import RefEscaped
from xlamini.core.sharding.facet import Sharding
from xlamini.core.tracing.compile_time import is_part_of_eager_trace
from xlamini.core.tracing.concretization import UnknownValue, value_of, values_together
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import active, build
from xlamini.interpreters.batch import batched_aval
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.transpose import WRITTEN
from xlamini.primitives import instantiated, move_batch_dim
from xlamini.primitives.collectives.reductions import psum_p
from xlamini.primitives.collectives.varying import varying_along
from xlamini.runtime import device_put_value
from xlamini.staging import Mask, chosen, given, inverse, merged, nonzero_of, with_none, with_zeros
from xlamini.staging.call.call_rules import call_jvp
from xlamini.staging.trace.tracing import visible
from xlamini.transforms.custom.call_site import is_concrete
from xlamini.transforms.custom.jvp_rule import BatchedJvp, JvpRule
from xlamini.transforms.custom.rule_contract import Contract
from xlamini.transforms.custom.vjp_rule import Backward, BackwardRule, BatchedBackward


@dataclass(frozen=True)
class ForwardMode:
    """The rule for forward mode as what a program computes: programs that differ in it have different executables."""

    rule: JvpRule

    def batched(self, axis: Axis, dims: Dims) -> ForwardMode:
        return ForwardMode(BatchedJvp(self.rule, axis, dims))


def linear_map(
    bwd: BackwardRule,
    residuals: Values,
    tangents: Values,
    out_avals: Avals,
    forward: ForwardMode | None = None,
    primals: Values = (),
) -> list[Any]:
    """The tangents of the outputs.

    With a rule for forward mode `primals` are its operands, and `tangents` those of the last of them.
    """
    differentiable = [is_differentiable(a) for a in out_avals]
    if bwd.takes_arrays() and not is_part_of_eager_trace():
        bwd = LateBackward(bwd)
    elif not bwd.symbolic_zeros:
        residuals, bwd = _traced_now(residuals, bwd, (True,) * sum(differentiable))
    outs = custom_lin_p.bind(
        *primals,
        *residuals,
        *given(tangents),
        bwd=bwd,
        forward=forward,
        in_zeros=inverse(nonzero_of(tangents)),
        num_primals=len(primals),
        num_res=len(residuals),
        out_avals=tuple(map(tangent_aval, chosen(out_avals, differentiable))),
    )
    return with_zeros(out_avals, differentiable, outs)


def _traced_now(residuals: Values, bwd: BackwardRule, nonzero: Mask) -> tuple[Values, BackwardRule]:
    """The rule as a jaxpr, and its residuals, while the tracers that it closes over can be captured."""
    try:
        jaxpr, found = bwd.traced(nonzero)
    except RefEscaped as touched:
        return residuals, WritingBackward(bwd, nonzero, touched)
    return [*jaxpr.consts, *residuals], TracedBackward(bwd.contract, Backward(close_over(jaxpr), found))


class LateBackward(BackwardRule):
    """A backward rule that is called in each backward pass: with arrays, outside of traced functions, as in JAX."""

    contract: Contract
    rule: Any
    symbolic_zeros: Any

    def __init__(self, rule: Any):
        self.rule, self.contract, self.symbolic_zeros = rule.at(None), rule.contract, rule.symbolic_zeros

    def traced(self, nonzero: Mask) -> Backward:
        return self.rule.traced(nonzero)

    def cotangents(self, operands: Values, cts: Values) -> list[Any]:
        """The cotangents of the arguments, None for zeros."""
        nonzero = nonzero_of(cts)
        try:
            if is_concrete([*operands, *given(cts)]):
                return self._called(operands, cts, values_together([*operands, *given(cts)]))
        except UnknownValue:  # an effect is to be had first
            pass
        except UnexpectedTracerError as leak:
            _take_value(leak)
        operands, rule = _traced_now(operands, self.rule, nonzero)
        return rule.cotangents(operands, cts)

    def _called(self, operands: Values, cts: Values, values: Values) -> list[Any]:
        if self.rule.site.closed:  # tracers, for which operands stand in a trace
            return self.rule.at(values).cotangents(operands, cts)
        with active(None):
            return list(map(_as_array, self.rule.called(nonzero_of(cts), visible(values))))


def _as_array(ct: Any) -> Any:
    """A cotangent as an array, even if the rule returned an ndarray."""
    return ct if ct is None or hasattr(ct, "aval") else device_put_value(ct, aval=aval_of(ct))


def _take_value(leak: UnexpectedTracerError) -> None:
    """Let the value of a tracer that a rule found, but that nothing showed, stand for it; the error if it has none."""
    tracer = leak.tracer
    if tracer is None or not is_concrete([tracer]):
        raise leak
    builder: Any = state.builder
    builder.environment[tracer.variable] = value_of(tracer)


class WritingBackward(BackwardRule):
    """A backward rule that writes refs. It runs in each backward pass, whose program returns their final values."""

    contract: Contract
    rule: Any
    cells: tuple[Any, ...]

    def __init__(self, rule: Any, nonzero: Mask, touched: RefEscaped):
        self.rule, self.contract, self.cells = rule, rule.contract, (touched.cell,)
        while True:
            try:
                rule.writing(nonzero, self.cells)
                return
            except RefEscaped as another:
                if another.cell in self.cells:
                    raise
                self.cells = (*self.cells, another.cell)

    def cotangents(self, operands: Values, cts: Values) -> list[Any]:
        """Also notes what the rule wrote, for the end of the pass."""
        written = state.builder and state.builder.memo.get(WRITTEN)
        if written is None:
            raise JAXTypeError(
                f"{self.contract} writes a ref, in a call that is part of a jitted function, a loop or a branch of the "
                "function that is differentiated; make the call outside of these, or return the value"
            )
        nonzero = nonzero_of(cts)
        values = [written[cell] if cell in written else cell.read() for cell in self.cells]
        jaxpr, found = self.rule.writing(nonzero, self.cells)
        outs = evaluate(jaxpr, [*operands, *given(cts), *values])
        count = len(outs) - len(self.cells)
        written.update(zip(self.cells, outs[count:], strict=True))
        return with_none(found, outs[:count])


class TracedBackward(BackwardRule):
    """A backward rule as a jaxpr, for cotangents of all outputs; the values it captured are the first residuals."""

    backward: Backward
    contract: Contract

    def __init__(self, contract: Contract, backward: Backward):
        self.contract, self.backward = contract, backward

    def traced(self, nonzero: Mask) -> Backward:
        return self.backward


class NoForwardMode(BackwardRule):
    """The rule of the derivative of a linear map of which only the transpose is given: an error once it is used."""

    def __init__(self, contract: Contract):
        self.contract = contract

    def traced(self, nonzero: Mask) -> Backward:
        raise _no_forward_mode(self, "")


class CustomLin(Primitive):
    """A linear map of the operands after `num_primals` and `num_res` others, given by its transpose `bwd`.

    `in_zeros` marks the arguments without tangent; `out_avals` are the types of the tangents that come out. The
    primals are there for the rule `forward`, or there are none.
    """

    traits = 0
    name = "custom_lin"
    multiple_results = True
    sharding: Sharding = Sharding(chooses_axes=True, casts=True)
    # A tangent that devices share stays shared, so that its cotangent is summed over them.
    lacks: Mapping[str, str] = {"lower": "only its transpose is known"}

    def shape_rule(self, *avals: ShapedArray, out_avals: Avals, **params: Any) -> list[ShapedArray]:
        return list(out_avals)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        """That of the rule for forward mode; without one, an error is deferred until the tangent is used."""
        if params["forward"] is not None:
            jaxpr, _ = build(lambda *xs: self.expand(*xs, **params), [x.aval for x in map(instantiated, primals)])
            return call_jvp(evaluate, jaxpr, primals, tangents)
        moving = given(tangents)
        marks = {"num_primals": 0, "num_res": 0, "in_zeros": (False,) * len(moving)}
        deferred = {"bwd": NoForwardMode(params["bwd"].contract), "forward": None, **marks}
        return self.bind(*primals, **params), self.bind(*moving, **{**params, **deferred})

    def transpose(
        self,
        cts: Values,
        *operands: Any,
        bwd: BackwardRule,
        in_zeros: Mask,
        num_primals: int,
        num_res: int,
        **params: Any,
    ) -> Values:
        first = num_primals + num_res
        out_cts = list(cts) if bwd.symbolic_zeros else list(map(instantiated, cts))
        moving = chosen(bwd.cotangents(operands[num_primals:first], out_cts), inverse(in_zeros))
        return [None] * first + [_summed(ct, x) for ct, x in zip(moving, operands[first:], strict=True)]

    def reads_cotangents(self, params: Params) -> bool:
        return isinstance(params["bwd"], LateBackward)

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        primals, count = params["num_primals"], params["num_primals"] + params["num_res"]
        if primals:
            operands, dims = _mapped_alike(axis, list(operands), list(dims), params)
        arg_dims = tuple(merged(params["in_zeros"], repeat(0), dims[count:]))
        bwd = BatchedBackward(params["bwd"], axis, tuple(dims[primals:count]), arg_dims)
        forward = params["forward"] and params["forward"].batched(axis, dims[:primals])
        out_avals = tuple(batched_aval(a, axis, 0) for a in params["out_avals"])
        outs = self.bind(*operands, **{**params, "bwd": bwd, "forward": forward, "out_avals": out_avals})
        return outs, [0] * len(outs)

    def expands_on(self, avals: Avals, params: Params) -> bool:
        return params["forward"] is not None

    def expand(
        self, *operands: Any, forward: ForwardMode, in_zeros: Mask, num_primals: int, num_res: int, **_: Any
    ) -> Values:
        """The tangents by the rule for forward mode."""
        primals, tangents = operands[:num_primals], operands[num_primals + num_res :]
        known = [Zero(tangent_aval(aval_of(x))) for x in primals[: num_primals - len(in_zeros)]]
        of_args = primals[num_primals - len(in_zeros) :]
        zeros = [Zero(tangent_aval(aval_of(x))) for x in chosen(of_args, in_zeros)]
        outs, found = forward.rule.pushed(primals, [*known, *merged(inverse(in_zeros), tangents, zeros)])
        return [instantiated(t) for t, x in zip(found, outs, strict=True) if is_differentiable(aval_of(x))]

    def lower(self, ctx: Any, *operands: Any, bwd: BackwardRule, **params: Any) -> NoReturn:
        source = ctx.eqn.provenance.source
        raise _no_forward_mode(bwd, f", called at {source}," if source else "")

    def shown_params(self, params: Params) -> Params:
        shown = {**params, "in_zeros": list(params["in_zeros"]), "symbolic_zeros": params["bwd"].symbolic_zeros}
        return {k: v for k, v in sorted(shown.items()) if k not in ("forward", "num_primals", "out_avals")}


def _mapped_alike(axis: Axis, operands: list[Any], dims: list[int | None], params: Params) -> tuple[Any, Any]:
    """The operands with primals and tangents mapped at 0 where one of them is, as rules for forward mode have them."""
    count, primals = params["num_primals"], range(params["num_primals"])
    moving = chosen(primals[count - len(params["in_zeros"]) :], inverse(params["in_zeros"]))
    for primal, tangent in zip(moving, range(count + params["num_res"], len(operands)), strict=True):
        if not dims[primal] is dims[tangent] is None:
            for i in (primal, tangent):
                operands[i], dims[i] = move_batch_dim(operands[i], axis.size, dims[i], 0), 0
    return operands, dims


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


custom_lin_p: Final = CustomLin()
