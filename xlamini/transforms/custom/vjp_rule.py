"""The rules fwd and bwd of a custom_vjp function as jaxprs.

    forward:  arguments                                     ->  (outputs, residuals)
    backward: (residuals, nonzero cotangents of outputs)    ->  nonzero cotangents of arguments

The user's functions are traced on single examples when a derivative is first taken; the rule of a batched call is their
batched jaxpr. The values that the rules close over are arguments in front of the call's own, and the first residuals.
"""
from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import (
    Axis,
    Cell,
    Dims,
    Jaxpr,
    Values,
    aval_of,
    is_differentiable,
    is_zero,
    named_axis,
    once,
    unflatten,
)
from xlamini.core.program.jaxpr import derived
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import move_batch_dim, sum_over
from xlamini.staging import Mask, chosen, given, inverse, merged, nonzero_of, with_none
from xlamini.staging.call.higher_order import names_in
from xlamini.staging.trace.ref_threading import run_with
from xlamini.transforms.custom.call_site import CallSite, CustomRule, weakly_typed_as
from xlamini.transforms.custom.jvp_rule import batched_as
from xlamini.transforms.custom.rule_contract import Contract, FwdResult
from xlamini.transforms.custom.rule_finite_differences import check_vjp_rules
from xlamini.transforms.custom.symbolic_zero import CustomVJPPrimal, zero_tangent

if TYPE_CHECKING:
    from xlamini.core.program.avals import ShapedArray


OTHERWISE = ", and return it from fwd among the residuals"


class Forward(NamedTuple):
    """A forward rule as a jaxpr, which returns `count` outputs and then the residuals, and the rule for these."""

    jaxpr: Jaxpr
    count: int
    backward: BackwardRule


class Backward(NamedTuple):
    """A backward rule as a jaxpr, which returns the cotangents of the arguments in `nonzero`; the others are zero."""

    jaxpr: Jaxpr
    nonzero: Mask


class ForwardRule(CustomRule):
    """The param `fwd` of a call."""

    bwd: Callable[..., Any]
    """The user's backward rule."""

    def traced(self, perturbed: Mask) -> Forward:
        """The rule for derivatives in the arguments in `perturbed`."""
        raise NotImplementedError


class BackwardRule(CustomRule):
    """The param `bwd` of a linear map (linear_map.py)."""

    symbolic_zeros = False

    def traced(self, nonzero: Mask) -> Backward:
        """The rule for cotangents of those differentiable outputs that `nonzero` marks."""
        raise NotImplementedError

    def cotangents(self, operands: Values, cts: Values) -> list[Any]:
        """The cotangents of the arguments, None for zeros, for these residuals and cotangents."""
        jaxpr, nonzero = self.traced(nonzero_of(cts))
        program = self.at_call(_transposed(jaxpr))
        return with_none(nonzero, evaluate(program, weakly_typed_as(jaxpr, [*operands, *given(cts)])))

    def takes_arrays(self) -> bool:
        """Whether it is a function of the user's, and the call that it belongs to is one on known values."""
        return False


@once
def _transposed(jaxpr: Jaxpr) -> Jaxpr:
    """The program of a rule, whose equations say that a transpose runs them; memoised on the jaxpr."""
    return jaxpr.replace(eqns=[eqn.at(derived("transpose", eqn)) for eqn in jaxpr.eqns])


class VjpRules(NamedTuple):
    """The arguments of `defvjp`."""

    fwd: Callable[..., Any]
    bwd: Callable[..., Any]
    symbolic_zeros: bool
    optimize_remat: bool


class UserForward(ForwardRule):
    """The user's fwd at one call."""

    bwd: Callable[..., Any]
    rules: VjpRules
    site: CallSite

    def __init__(self, rules: VjpRules, site: CallSite):
        self.rules, self.site, self.bwd = rules, site, rules.bwd
        self.contract: Contract = Contract("custom_vjp (fwd)", rules.fwd, site.types)

    def __eq__(self, other: object) -> bool:
        return type(other) is UserForward and all(map(is_, self.rules, other.rules)) and self.site == other.site

    def __hash__(self) -> int:
        return id(self.rules.fwd)

    def traced(self, perturbed: Mask) -> Forward:
        return self.traced_early(perturbed) or self.traced_anew(perturbed)

    def traced_anew(self, perturbed: Mask) -> Forward:
        site, results = self.site, []

        def flat(closed: Values, args: Values) -> list[Any]:
            leaves = list(map(CustomVJPPrimal, args, perturbed)) if self.rules.symbolic_zeros else args
            results.append(self.contract.fwd(self.rules.fwd(*site.full_args(leaves))))
            outs, residuals, _ = results[0]
            return [*outs, *closed, *(x for x in residuals if not _is_static(x))]

        jaxpr = site.trace(self.contract, flat, site.avals, site.concrete(), further=OTHERWISE)
        count, backward = len(site.types.out_avals), UserBackward(self.rules, site, results[0])
        if site.debugged is not None:
            differentiable = (True,) * sum(map(is_differentiable, site.types.out_avals))
            check_vjp_rules(backward.contract, site, jaxpr, *backward.traced(differentiable))
        return Forward(jaxpr, count, backward)


def _or_none(ct: Any) -> Any:
    return None if is_zero(ct) else ct


def _is_static(residual: Any) -> bool:
    """Whether a residual is a Python number, which bwd gets as it is."""
    return type(residual) in (bool, int, float, complex)


class UserBackward(BackwardRule):
    """The user's bwd, for residuals like those that fwd returned."""

    numbers: list[Any]
    rules: VjpRules
    site: CallSite
    tree: Any

    def __init__(self, rules: VjpRules, site: CallSite, result: FwdResult):
        self.rules, self.site, self.tree = rules, site, result.tree
        self.contract: Contract = Contract("custom_vjp (bwd)", rules.bwd, site.types)
        self.symbolic_zeros: bool = rules.symbolic_zeros
        self.is_array: tuple[bool, ...] = tuple(not _is_static(x) for x in result.residuals)
        self.numbers, arrays = chosen(result.residuals, inverse(self.is_array)), chosen(result.residuals, self.is_array)
        count, concrete = len(site.closed), site.concrete()
        self.avals: list[ShapedArray] = [*site.avals[:count], *map(aval_of, arrays)]
        self.values: list[Any] | None = None if concrete is None else [*concrete[:count], *arrays]

    def takes_arrays(self) -> bool:
        return self.values is not None and not self.is_fixed

    def at(self, values: Values | None) -> UserBackward:
        """The rule for these values of its first inputs, which Python control flow may read."""
        new = copy.copy(self)
        new.values = None if values is None else list(values)
        return new

    def called(self, nonzero: Mask, operands: Values) -> list[Any]:
        """What the user's function returns for these residuals and nonzero cotangents."""
        count = sum(self.is_array)
        return list(map(_or_none, self._result(nonzero, operands[:count], operands[count:])))

    def traced(self, nonzero: Mask) -> Backward:
        return self.writing(nonzero, ())

    def writing(self, nonzero: Mask, cells: tuple[Cell, ...]) -> Backward:
        """The rule as a jaxpr that also takes the values of the cells that it writes, and returns the final ones."""
        site, types, found = self.site, self.site.types, []
        count, end = sum(self.is_array), sum(self.is_array) + sum(nonzero)

        def flat(closed: Values, inputs: Values) -> list[Any]:
            call = functools.partial(self._result, nonzero, inputs[:count], inputs[count:end])
            result, last = run_with(cells, inputs[end:], call)
            found.extend(result)
            return [*given(found), *last]

        ct_avals = chosen([a for a in types.out_avals if is_differentiable(a)], nonzero)
        avals = [*self.avals, *ct_avals, *(cell.aval for cell in cells)]
        jaxpr = site.trace(self.contract, flat, avals, self.values, further=OTHERWISE)
        return Backward(jaxpr, nonzero_of(found))

    def _result(self, nonzero: Mask, arrays: Values, given_cts: Values) -> list[Any]:
        """The cotangents that the user's function returns, symbolic zeros among them."""
        residuals = unflatten(self.tree, merged(self.is_array, arrays, self.numbers))
        cts = unflatten(self.site.types.out_tree, self._cotangents(nonzero, given_cts))
        return self.contract.bwd(self.rules.bwd(*self.site.before(residuals, cts)))

    def _cotangents(self, nonzero: Mask, arrays: Values) -> list[Any]:
        """A cotangent for every output: an array, or a zero of the kind that the rule asked for."""
        marks, rest = iter(nonzero), iter(arrays)
        return [
            next(rest) if is_differentiable(a) and next(marks) else zero_tangent(a, self.symbolic_zeros)
            for a in self.site.types.out_avals
        ]


@dataclass(frozen=True, repr=False)
class BatchedForward(ForwardRule):
    """A forward rule for operands with batch dimensions `dims`; its outputs in `out_batched` have theirs at 0."""

    rule: ForwardRule
    axis: Axis
    dims: tuple[int | None, ...]
    out_batched: Mask

    @property
    def contract(self) -> Contract:  # type: ignore[override]
        return self.rule.contract

    @property
    def bwd(self) -> Callable[..., Any]:  # type: ignore[override]
        return self.rule.bwd

    def traced(self, perturbed: Mask) -> Forward:
        with named_axis(self.axis):
            single = self.rule.traced(perturbed)
        _, found = batch(single.jaxpr, self.axis, self.dims)
        residuals = found[single.count :]
        jaxpr = batched_as(single.jaxpr, self.axis, self.dims, [*self.out_batched, *(d is not None for d in residuals)])
        arg_dims = self.dims[len(self.dims) - len(perturbed) :]
        moving = [m for m, a in zip(self.out_batched, single.jaxpr.out_avals, strict=False) if is_differentiable(a)]
        residual_dims = tuple(None if d is None else 0 for d in residuals)
        backward = BatchedBackward(single.backward, self.axis, residual_dims, arg_dims, tuple(moving))
        return Forward(jaxpr, single.count, backward)


@dataclass(frozen=True, repr=False)
class BatchedBackward(BackwardRule):
    """A backward rule for a batch of cotangents, at dimension 0; of outputs that are not batched they are not either.

    An argument without batch dimension (None in `dims`) is shared by the whole batch, so its cotangents are summed.
    """

    rule: BackwardRule
    axis: Axis
    residual_dims: Dims
    dims: tuple[int | None, ...]
    out_batched: Mask | None = None
    """Of the differentiable outputs; None for all."""

    @property
    def contract(self) -> Contract:  # type: ignore[override]
        return self.rule.contract

    @property
    def symbolic_zeros(self) -> bool:  # type: ignore[override]
        return self.rule.symbolic_zeros

    def traced(self, nonzero: Mask) -> Backward:
        with named_axis(self.axis):
            single = self.rule.traced(nonzero)
        moving = chosen(self.out_batched or (True,) * len(nonzero), nonzero)
        dims = (*self.residual_dims, *(0 if m else None for m in moving))
        is_mapped = any(d is not None for d in dims)
        batched, found = batch(single.jaxpr, self.axis, dims, (is_mapped,) * sum(single.nonzero))
        # Where a rule sums over the examples, each has its share of the cotangent of an output that is not batched.
        shared = [not m and self.axis.name in names_in(single.jaxpr) for m in moving]
        ct_dims, first = chosen(self.dims, single.nonzero), len(self.residual_dims)

        def moved(*operands: Any) -> list[Any]:
            given_cts = [ct / self.axis.size if s else ct for ct, s in zip(operands[first:], shared, strict=True)]
            cts = evaluate(batched, [*operands[:first], *given_cts])
            return [_with_dim(ct, self.axis, *ds) for ct, *ds in zip(cts, found, ct_dims, strict=True)]

        return Backward(build(moved, batched.in_avals, batched.name)[0], single.nonzero)


def _with_dim(ct: Any, axis: Axis, source: int | None, dim: int | None) -> Any:
    """A cotangent with the batch dimension of its argument, or without one as that has none."""
    if dim is None:
        return ct if source is None else sum_over(ct, (source,))
    return move_batch_dim(ct, axis.size, source, dim)
