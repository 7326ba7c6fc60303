"""The derivative of a call as a linear map: the primitive `call_hi_primitive_linearized`.

Its operands are residuals and the tangents that are not zero. It is transposed by the user's `vjp_bwd`, or by the
transpose of his `linearized`, which is also what it computes.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    close_over,
    cotangent_aval,
    is_zero,
    tangent_aval,
    unflatten,
)
from xlamini.core.caching.structure import RewriteRule
from xlamini.core.program.hi_types import fits
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.experimental.hijax.hi_call import HiCall, OfUsersTypes
from xlamini.extend.rules import as_values
from xlamini.interpreters.batch import batch, batched_aval
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import push_forward
from xlamini.interpreters.transpose import transpose
from xlamini.primitives import instantiated, move_batch_dim, sum_over
from xlamini.staging import Mask, chosen, given, merged, nonzero_of, with_none, with_zeros
from xlamini.transforms.axes import unbatched_aval
from xlamini.transforms.custom.accumulators import GradAccum, NullAccum, ValAccum


class UsersLinearRule(RewriteRule):
    """The linear map of one call, by the user's rules; `nonzero` marks the arguments' leaves with a tangent."""

    call: HiCall
    nonzero: Mask
    nonzero_out: Mask
    tree: Any

    reads_values = True  # so the backward pass runs where a rule may read the values of cotangents

    def __init__(self, call: HiCall, nonzero: Mask, nonzero_out: Mask, residuals: Any):
        self.call, self.nonzero, self.nonzero_out, self.tree = call, nonzero, nonzero_out, residuals
        self.out_avals: list[ShapedArray] = [tangent_aval(a) for a in chosen(call.out_avals, nonzero_out)]

    def forward(self, residuals: Values, tangents: Values) -> list[Any]:
        """The tangents of the outputs in `nonzero_out`."""
        call, found = self.call, iter(as_values(tangents))
        pairs = zip(call.in_avals, self.nonzero, strict=True)
        every = unflatten(call.primitive.in_tree, [next(found) if nz else Zero(tangent_aval(a)) for a, nz in pairs])
        (kept, structured), _, primals = unflatten(self.tree, as_values(residuals))
        user = call.primitive
        out = user.jvp(primals, every)[1] if primals else user.linearized(kept, *structured, *every)
        return list(map(instantiated, chosen(call.tangents("linearized", out), self.nonzero_out)))

    def backward(self, residuals: Values, cts: Values) -> list[Any]:
        """The cotangents of the arguments in `nonzero`, from those of the outputs in `nonzero_out`."""
        call, user, found = self.call, self.call.primitive, iter(as_values(cts))
        pairs = zip(call.out_avals, self.nonzero_out, strict=True)
        every = [next(found) if nz else Zero(cotangent_aval(a)) for a, nz in pairs]
        pairs = zip(call.in_avals, self.nonzero, strict=True)
        accumulators = [(ValAccum if nz else NullAccum)(a) for a, nz in pairs]
        trees = unflatten(user.in_tree, accumulators)
        shared, own, _ = unflatten(self.tree, as_values(residuals))
        kept, structured = own[0] if own else shared
        if structured and not user.writes("vjp_bwd"):
            signature = "def vjp_bwd(self, res, sres, outgrad, *arg_accums)"
            raise TypeError(f"{call.name}.vjp_fwd returns structured residuals, which need a rule `{signature}`")
        user.vjp_bwd(kept, *structured, unflatten(user.out_tree, every), *trees)
        return [_checked(self, a) for a in chosen(accumulators, self.nonzero)]

    @property
    def transposes_itself(self) -> bool:
        """Whether the user writes how the map is transposed."""
        user = self.call.primitive
        return user.writes("vjp_bwd") or user.writes("vjp_bwd_retval") or not user.writes("linearized")

    def __repr__(self) -> str:
        return repr(self.call)


def _checked(rule: UsersLinearRule, accumulator: GradAccum) -> Any:
    total = accumulator.val
    if is_zero(total):
        return total
    found, due = aval_of(total), cotangent_aval(accumulator._aval)
    if not fits(found, due):
        raise TypeError(
            f"{rule.call.name}: its rule gives a cotangent {found.str_long()} for an argument whose cotangents "
            f"are {due.str_long()}"
        )
    return total


class BatchedLinear(RewriteRule):
    """The linear map of a batch; tangents and cotangents have the batch at 0, or not at all."""

    axis: Axis
    dims: tuple[int | None, ...]
    residual_dims: tuple[int | None, ...]
    rule: Any

    reads_values = True
    transposes_itself = True

    def __init__(self, rule: Any, axis: Axis, residual_dims: Dims, dims: Dims):
        self.rule, self.axis, self.residual_dims, self.dims = rule, axis, tuple(residual_dims), tuple(dims)
        self.out_avals: list[ShapedArray] = [batched_aval(a, axis, 0) for a in rule.out_avals]

    def forward(self, residuals: Values, tangents: Values) -> list[Any]:
        """The tangents of the differentiable outputs, each a batch."""
        return self._mapped(self.rule.forward, residuals, self.residual_dims, tangents, self.dims)

    def backward(self, residuals: Values, cts: Values) -> list[Any]:
        """The cotangents of the arguments; of one that all examples share, the sum."""
        nonzero = nonzero_of(cts)
        zeros = [Zero(cotangent_aval(a)) for a in self.rule.out_avals]

        def single(residuals: Values, some: Values) -> list[Any]:
            every = merged(nonzero, some, [z for z, nz in zip(zeros, nonzero, strict=True) if not nz])
            return [instantiated(ct) for ct in self.rule.backward(residuals, every)]

        found = self._mapped(single, residuals, self.residual_dims, given(cts), (0,) * sum(nonzero))
        return [
            sum_over(ct, (0,)) if d is None else move_batch_dim(ct, self.axis.size, 0, d)
            for ct, d in zip(found, self.dims, strict=True)
        ]

    def _mapped(self, fun: Any, first: Values, first_dims: Dims, second: Values, second_dims: Dims) -> list[Any]:
        operands, dims, count = [*first, *second], (*first_dims, *second_dims), len(first)
        avals = [unbatched_aval(aval_of(x), d, self.axis.size) for x, d in zip(operands, dims, strict=True)]
        jaxpr, captured = build(lambda *xs: fun(xs[:count], xs[count:]), avals)
        program = close_over(jaxpr)
        every = (*(None,) * len(captured), *dims)
        batched, _ = batch(program, self.axis, every, (True,) * len(program.outvars))
        return evaluate(close_over(batched), [*batched.consts, *captured, *operands])


def linear_map(rule: UsersLinearRule, residuals: Values, tangents: Values) -> list[Any]:
    """The tangents of all outputs."""
    outs = linearized_p.bind(*residuals, *given(tangents), bwd=rule, num_res=len(residuals))
    return with_zeros(rule.call.out_avals, rule.nonzero_out, outs)


class UsersLinearMap(OfUsersTypes):
    """A linear map of the operands after the first `num_res`, by the user's rules."""

    traits = 0
    name = "call_hi_primitive_linearized"
    multiple_results = True
    lacks: Mapping[str, str] = {"lower": "the user's rule replaces it"}

    def shape_rule(self, *avals: ShapedArray, bwd: Any, num_res: int) -> Avals:
        return bwd.out_avals

    def jvp(self, primals: Values, tangents: Values, *, bwd: Any, num_res: int) -> Any:
        """By the program of `linearized`, which depends on the residuals as well."""
        jaxpr, captured = build(
            lambda *xs: bwd.forward(xs[:num_res], xs[num_res:]), [aval_of(x) for x in primals], self.name
        )
        program = close_over(jaxpr)
        zeros = [Zero(tangent_aval(aval_of(x))) for x in captured]
        return push_forward(program, [*captured, *primals], [*zeros, *tangents], "jvp", lambda *_: None)

    def transpose(self, cts: Values, *operands: Any, bwd: Any, num_res: int) -> Values:
        residuals, linear = operands[:num_res], [x.aval for x in operands[num_res:]]
        if bwd.transposes_itself:
            return [*[None] * num_res, *bwd.backward(residuals, cts)]
        avals = [*(aval_of(x) for x in residuals), *linear]
        jaxpr, captured = build(lambda *xs: bwd.forward(xs[:num_res], xs[num_res:]), avals, self.name)
        known = len(captured) + num_res
        mask = (*(False,) * known, *(True,) * len(linear))
        back, nonzero = transpose(close_over(jaxpr), mask, nonzero_of(cts))
        found = evaluate(close_over(back), [*back.consts, *captured, *residuals, *given(cts)])
        return [*[None] * num_res, *with_none(nonzero, found)]

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, bwd: Any, num_res: int) -> Any:
        rule = BatchedLinear(bwd, axis, dims[:num_res], dims[num_res:])
        return self.bind(*operands, bwd=rule, num_res=num_res), [0] * len(rule.out_avals)

    def expand(self, *operands: Any, bwd: Any, num_res: int) -> list[Any]:
        return bwd.forward(operands[:num_res], operands[num_res:])

    def bind(self, *operands: Any, **params: Any) -> Any:
        return self.expand(*operands, **params) if state.builder is None else super().bind(*operands, **params)


linearized_p: Final = UsersLinearMap()
