"""The two rules of a custom_vjp function as jaxprs, traced when they are first needed.

    forward:  (captured values, arguments)                          -> (outputs, residuals)
    backward: (captured values, residuals, cotangents of outputs)   -> cotangents of arguments

The user's functions are traced on single examples; a batched rule is the batched jaxpr of the rule it wraps.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.named_axes import named_axis
from xlamini.core.primitive import Axis
from xlamini.core.pytree import flatten_from_user, unflatten
from xlamini.core.structure import RewriteRule
from xlamini.core.tangents import is_differentiable, is_zero, tangent_aval
from xlamini.core.tracer import Tracer, aval_of, build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.batch_ops import move_batch_dim
from xlamini.primitives.convert import convert
from xlamini.primitives.shape import sum_over
from xlamini.primitives.tangent_ops import zeros
from xlamini.transforms.arguments import name_of
from xlamini.transforms.custom.vjp_checks import SymbolicZero, checked_cotangents, checked_pair, explaining
from xlamini.transforms.higher_order import Mask, given, merged, nonzero_of

Dims = tuple[int | None, ...]


@dataclass(frozen=True)
class Signature:
    """One call of a custom_vjp function: the types of its arguments and outputs, flat and as trees."""

    name: str
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[ShapedArray, ...]
    names: Sequence[str] = field(compare=False, repr=False)


class UserRules(NamedTuple):
    """What `defvjp` was given, and the arguments that no derivative is asked for, by their positions."""

    fwd: Callable[..., Any]
    bwd: Callable[..., Any]
    symbolic_zeros: bool
    optimize_remat: bool
    fixed: tuple[tuple[int, Any], ...] = ()

    def run_fwd(self, args: Sequence[Any]) -> Any:
        return self.fwd(*with_fixed(self.fixed, args))

    def run_bwd(self, residuals: Any, cotangents: Any) -> Any:
        return self.bwd(*(value for _, value in self.fixed), residuals, cotangents)


def with_fixed(fixed: Sequence[tuple[int, Any]], args: Sequence[Any]) -> list[Any]:
    """All arguments in the order of the user's call."""
    full = list(args)
    for position, value in fixed:
        full.insert(position, value)
    return full


class CustomVJPPrimal:
    """What a fwd rule with `symbolic_zeros` gets for an argument: its `value`, and whether it is `perturbed`."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


class Forward(NamedTuple):
    """A forward rule as a jaxpr of (captured values, arguments), with the values and what belongs to it.

    It returns `count` outputs, then the residuals.
    """

    jaxpr: Jaxpr
    captured: list[Any]
    count: int
    backward: Backward


class Pulled(NamedTuple):
    """A backward rule as a jaxpr of (captured values, residuals, cotangents that are not zero).

    It returns the cotangents of the arguments marked in `nonzero`; the others are zero.
    """

    jaxpr: Jaxpr
    captured: list[Any]
    nonzero: Mask


class ForwardRule(RewriteRule):
    """The param `fwd` of an equation."""

    def traced(self, perturbed: Mask) -> Forward:
        """The rule for the arguments marked in `perturbed` being differentiated."""
        raise NotImplementedError


class Backward(RewriteRule):
    """The param `bwd` of an equation that has residuals as operands."""

    symbolic_zeros = False

    def traced(self, nonzero: Mask) -> Pulled:
        """The rule for those outputs that have derivatives having cotangents where `nonzero`."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class BackwardName(RewriteRule):
    """The param `bwd` of a call: what `fwd` leads to."""

    bwd: Callable[..., Any]

    def __repr__(self) -> str:
        return name_of(self.bwd)


class UserForward(ForwardRule):
    """The user's fwd at one call. `values` are the arguments of that call, if Python may ask for their numbers."""

    def __init__(self, rules: UserRules, call: Signature, values: Sequence[Any] | None):
        self.rules, self.call, self.values = rules, call, values

    def __repr__(self) -> str:
        return name_of(self.rules.fwd)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is UserForward
            and self.values is None
            and other.values is None
            and _same_fixed(self.rules.fixed, other.rules.fixed)
            and (_functions(self.rules), self.call) == (_functions(other.rules), other.call)
        )

    def __hash__(self) -> int:
        return hash((_functions(self.rules), self.call))

    def traced(self, perturbed: Mask) -> Forward:
        rules, call = self.rules, self.call
        made: dict[str, Any] = {}

        def flat(*tracers: Any) -> list[Any]:
            given = list(map(CustomVJPPrimal, tracers, perturbed)) if rules.symbolic_zeros else tracers
            pair = checked_pair(call, rules.fwd, rules.run_fwd(unflatten(call.in_tree, given)))
            outs = [convert(x, a.dtype, a.weak_type) for x, a in zip(pair.outs, call.out_avals, strict=True)]
            made.update(tree=pair.tree, residuals=pair.residuals)
            return [*outs, *(x for x in pair.residuals if not _is_static(x))]

        with explaining("fwd", rules.fwd, call):
            jaxpr, captured = build(flat, call.in_avals, name_of(rules.fwd), call.names, self.values)
        values = made["residuals"] if self.values is not None else None
        kept = [_described(x) for x in made["residuals"]]
        backward = UserBackward(rules, call, made["tree"], kept, values)
        return Forward(close_over(jaxpr), captured, len(call.out_avals), backward)


def _functions(rules: UserRules) -> tuple:
    return rules.fwd, rules.bwd, rules.symbolic_zeros, rules.optimize_remat


def _same_fixed(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(i == j and x is y for (i, x), (j, y) in zip(one, other, strict=True))


def _is_static(residual: Any) -> bool:
    """A Python number is passed on to bwd as it is."""
    return type(residual) in (bool, int, float, complex)


def _described(residual: Any) -> Any:
    """A residual that is known already, or the type of one that is computed."""
    return residual if _is_static(residual) else aval_of(residual)


class UserBackward(Backward):
    """The user's bwd, for residuals of the types `kept`; those that are Python numbers are there themselves."""

    def __init__(self, rules: UserRules, call: Signature, tree: Any, kept: Sequence[Any], values: Any):
        self.rules, self.call, self.tree, self.kept, self.values = rules, call, tree, kept, values
        self.symbolic_zeros = rules.symbolic_zeros

    def __repr__(self) -> str:
        return name_of(self.rules.bwd)

    def traced(self, nonzero: Mask) -> Pulled:
        rules, call = self.rules, self.call
        computed = [isinstance(x, ShapedArray) for x in self.kept]
        avals = [x for x in self.kept if isinstance(x, ShapedArray)]
        found: list[Any] = []

        def flat(*tracers: Any) -> list[Any]:
            numbers = (x for x in self.kept if not isinstance(x, ShapedArray))
            residuals = unflatten(self.tree, merged(computed, tracers, numbers))
            cts = self._cotangents(nonzero, tracers[len(avals) :])
            result = rules.run_bwd(residuals, unflatten(call.out_tree, cts))
            found.extend(checked_cotangents(call, rules.bwd, result))
            return given(found)

        differentiable = [a for a in call.out_avals if is_differentiable(a)]
        ct_avals = [a for a, nz in zip(differentiable, nonzero, strict=True) if nz]
        with explaining("bwd", rules.bwd, call):
            jaxpr, captured = build(flat, [*avals, *ct_avals], name_of(rules.bwd), None, self._known(len(ct_avals)))
        return Pulled(close_over(jaxpr), captured, nonzero_of(found))

    def _cotangents(self, nonzero: Mask, tracers: Sequence[Any]) -> list[Any]:
        """One for every output: an array, float0, or for a zero what the user asked for."""
        marks, arrays = iter(nonzero), iter(tracers)
        return [
            self._missing(a) if not (is_differentiable(a) and next(marks)) else next(arrays)
            for a in self.call.out_avals
        ]

    def _missing(self, aval: ShapedArray) -> Any:
        if self.symbolic_zeros:
            return SymbolicZero(tangent_aval(aval))
        return zeros(aval) if is_differentiable(aval) else np.zeros(aval.shape, float0)

    def _known(self, count: int) -> list[Any] | None:
        """The numbers of the residuals, where the forward rule had those of its arguments."""
        if self.values is None:
            return None
        return [*(x for x in self.values if not _is_static(x)), *[None] * count]


class ClosedBackward(Backward):
    """A backward rule traced already, for all cotangents being there; what it captured comes before the residuals."""

    def __init__(self, jaxpr: Jaxpr, nonzero: Mask, name: str):
        self.jaxpr, self.nonzero, self.name = jaxpr, nonzero, name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(other) is ClosedBackward and (self.jaxpr, self.nonzero) == (other.jaxpr, other.nonzero)

    def __hash__(self) -> int:
        return hash((self.jaxpr, self.nonzero))

    def traced(self, nonzero: Mask) -> Pulled:
        return Pulled(self.jaxpr, [], self.nonzero)


@dataclass(frozen=True, repr=False)
class BatchedForward(ForwardRule):
    """A forward rule for arguments with batch dimensions; its outputs have theirs at 0."""

    rule: ForwardRule
    axis: Axis
    dims: Dims

    def __repr__(self) -> str:
        return repr(self.rule)

    def traced(self, perturbed: Mask) -> Forward:
        with named_axis(self.axis):
            single = self.rule.traced(perturbed)
        residuals = len(single.jaxpr.outvars) - single.count
        dims = (None,) * len(single.captured) + self.dims
        force = (True,) * single.count + (False,) * residuals
        jaxpr, out_dims = batch(single.jaxpr, self.axis, dims, force)
        backward = BatchedBackward(single.backward, self.axis, out_dims[single.count :], self.dims)
        return Forward(close_over(jaxpr), [*jaxpr.consts, *single.captured], single.count, backward)


@dataclass(frozen=True, repr=False)
class BatchedBackward(Backward):
    """A backward rule for a batch of cotangents, at dimension 0.

    An argument without a batch dimension (None in `dims`) is the same for the whole batch, so that its cotangents sum.
    """

    rule: Backward
    axis: Axis
    residual_dims: Dims
    dims: Dims

    def __repr__(self) -> str:
        return repr(self.rule)

    @property
    def symbolic_zeros(self) -> bool:  # type: ignore[override]
        return self.rule.symbolic_zeros

    def traced(self, nonzero: Mask) -> Pulled:
        with named_axis(self.axis):
            single = self.rule.traced(nonzero)
        dims = (None,) * len(single.captured) + self.residual_dims + (0,) * sum(nonzero)
        batched, _ = batch(single.jaxpr, self.axis, dims, (True,) * sum(single.nonzero))
        wanted = [d for d, nz in zip(self.dims, single.nonzero, strict=True) if nz]

        def placed(*operands: Any) -> list[Any]:
            cts = evaluate(batched, operands)
            return [_placed(ct, self.axis, d) for ct, d in zip(cts, wanted, strict=True)]

        jaxpr, _ = build(placed, batched.in_avals, batched.name)
        return Pulled(close_over(jaxpr), [*jaxpr.consts, *single.captured], single.nonzero)


def _placed(ct: Any, axis: Axis, dim: int | None) -> Any:
    return sum_over(ct, (0,)) if dim is None else move_batch_dim(ct, axis.size, 0, dim)


def values_known(args: Sequence[Any]) -> list[Any] | None:
    """The arguments, if Python may ask for their numbers."""
    known = all(type(x) is not Tracer or x.builder.known for x in args)
    return list(args) if known else None
