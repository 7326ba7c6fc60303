"""The two rules of a custom_vjp function as jaxprs, traced when they are first needed.

    forward:  (captured values, arguments)                          -> (outputs, residuals)
    backward: (captured values, residuals, cotangents of outputs)   -> cotangents of arguments

The user's functions (`user_vjp.py`) are traced on single examples; a batched rule is the batched jaxpr of the rule it
wraps.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.named_axes import named_axis
from xlamini.core.primitive import Axis
from xlamini.core.structure import RewriteRule
from xlamini.core.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.batch_ops import move_batch_dim
from xlamini.primitives.shape import sum_over
from xlamini.staging.call.higher_order import Mask
from xlamini.staging.trace.arguments import name_of

Dims = tuple[int | None, ...]


class Forward(NamedTuple):
    """A forward rule as a jaxpr of (captured values, values closed over, arguments), and what belongs to it.

    It returns `count` outputs, then the residuals, of which the first are what was closed over.
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


class BackwardName(RewriteRule):
    """The param `bwd` of a call: what `fwd` leads to."""

    def __init__(self, bwd: Callable[..., Any]):
        self.bwd = bwd

    def __eq__(self, other: object) -> bool:
        return type(other) is BackwardName and self.bwd is other.bwd

    def __hash__(self) -> int:
        return id(self.bwd)

    def __repr__(self) -> str:
        return name_of(self.bwd)


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
    """A forward rule for operands with batch dimensions `dims`; its outputs have theirs at 0."""

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
        own = self.dims[len(self.dims) - len(perturbed) :]
        backward = BatchedBackward(single.backward, self.axis, out_dims[single.count :], own)
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
