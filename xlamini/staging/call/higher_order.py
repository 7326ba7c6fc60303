"""HigherOrder: the base class of primitives with jaxprs in their params.

Their rules call the rewrites on those jaxprs and bind the primitive again. A rewritten jaxpr may have captured values;
`bind` turns them into operands through the primitive's `with_captured`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlamini.core import (
    Avals,
    CallLike,
    ClosedJaxpr,
    Cost,
    Effects,
    Equation,
    Jaxpr,
    Params,
    Primitive,
    ShapedArray,
    Values,
    Zero,
    is_zero,
    once,
    subjaxprs,
    tangent_aval,
)
from xlamini.core.program.checks import Checks
from xlamini.core.program.equation_kind import equation_cost
from xlamini.core.program.jaxpr import jaxprs_in
from xlamini.core.program.key_uses import KeyUses
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.manual_axes import named_axes
from xlamini.interpreters.key_reuse import key_uses, uses_of_call

Mask = tuple[bool, ...]


def key_uses_inside(eqn: Equation) -> KeyUses:
    """Those of the jaxpr that it calls; otherwise no more than the reuses inside of its jaxprs."""
    if isinstance(eqn.primitive, CallLike):
        return uses_of_call(eqn.params[eqn.primitive.called])
    return KeyUses(reuses=tuple(reuse for jaxpr in subjaxprs(eqn) for reuse in key_uses(jaxpr).reuses))


def axes_inside(params: Params) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(name for jaxpr in jaxprs_in(params) for name in names_in(jaxpr)))


class HigherOrder(Primitive):
    """A primitive with jaxprs in its params; a subclass defines in `with_captured` how they take further operands."""

    multiple_results = True
    higher_order = True
    traits = 0
    sharding: Sharding = Sharding(named_axes=axes_inside)
    checks: Checks = Checks(key_uses=key_uses_inside)

    def bind(self, *operands: Any, **params: Any) -> list[Any]:
        every: Sequence[Any] = operands
        if any(map(_is_closed, params.values())):
            params = {name: opened(value) for name, value in params.items()}
        if any(jaxpr.constvars for jaxpr in jaxprs_in(params)):
            every, params = self.with_captured(operands, params)
        return super().bind(*every, **params)

    def operand_avals(self, params: Params) -> Avals:
        """The input types of its jaxprs; none if their vma may differ from the operands'."""
        return ()

    def is_nested(self, params: Params) -> bool:
        """Whether the jaxprs among the params are compiled as the body of a loop or a branch, not inlined."""
        return True

    def widened(self, ins: Sequence[int], outs: Sequence[int], params: Params) -> Params:
        """The params where operands and results of users' types become arrays."""
        self._missing("widened", "(self, ins, outs, params) -> params")

    def discharge(self, refs: Sequence[Any], operands: Values, **params: Any) -> tuple[list[Any], dict[Any, Any]]:
        """The results for the values of refs, and their new values: a jaxpr of refs becomes one of their values."""
        self._missing("discharge", "(self, refs, operands, **params) -> (outs, {ref: new})")

    def runs(self, params: Params) -> list[tuple[Jaxpr, int]]:
        """The jaxprs that one evaluation runs, and how often; a class that overrides `cost` instead returns none."""
        return [(jaxpr, 1) for jaxpr in jaxprs_in(params)]

    unknown_trips = False
    """Whether the jaxprs run an unknown number of times, for which `runs` says once."""

    def recomputes(self, params: Params) -> bool:
        """Whether what no transpose made, in its jaxprs, is a recomputation of the forward pass."""
        return False

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        """The cost of all runs of its jaxprs."""
        return total(Cost(n * c.flops, n * c.bytes) for jaxpr, n in self.runs(params) for c in [cost_of(jaxpr)])

    def effects(self, avals: Avals, params: Params) -> Effects:
        return frozenset().union(*[jaxpr.effects for jaxpr in jaxprs_in(params)])

    def with_captured(self, operands: Values, params: Params) -> tuple[Sequence[Any], dict[str, Any]]:
        """The operands and params after the values that the jaxprs captured have become operands."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its jaxprs take captured values")


def _is_closed(param: Any) -> bool:
    kind = type(param)
    return kind is ClosedJaxpr or (kind is tuple and any(map(_is_closed, param))) or (
        kind is not Jaxpr and isinstance(param, Jaxpr)
    )


def opened(param: Any) -> Any:
    """A param with jaxprs in place of closed jaxprs, as an interpreter that users write may bind an equation again."""
    if type(param) is ClosedJaxpr:
        return param.jaxpr.with_consts(param.consts)
    if isinstance(param, Jaxpr):
        return param.with_consts(())
    return tuple(map(opened, param)) if type(param) is tuple else param


@once
def names_in(jaxpr: Jaxpr) -> tuple[Any, ...]:
    """The named axes that a jaxpr's equations refer to; memoised on the jaxpr."""
    return tuple(dict.fromkeys(name for eqn in jaxpr.eqns for name in named_axes(eqn.primitive, eqn.params)))


def cost_of(jaxpr: Jaxpr) -> Cost:
    """The cost of running a jaxpr once."""
    return total(map(equation_cost, jaxpr.eqns))


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of costs."""
    every = list(costs)
    return Cost(sum(c.flops for c in every), sum(c.bytes for c in every))


def nonzero_of(tangents: Values) -> Mask:
    """For each tangent or cotangent, whether it is an array and no symbolic zero."""
    return tuple(not is_zero(t) for t in tangents)


def given(tangents: Values) -> list[Any]:
    """The tangents without symbolic zeros: the operands of a rewritten jaxpr."""
    return [t for t in tangents if not is_zero(t)]


def with_zeros(avals: Avals, nonzero: Sequence[bool], tangents: Iterable[Any]) -> list[Any]:
    """A tangent for each output: those computed, and symbolic zeros for the rest."""
    found = iter(tangents)
    return [next(found) if nz else Zero(tangent_aval(a)) for a, nz in zip(avals, nonzero, strict=True)]


def with_none(wanted: Sequence[bool], values: Iterable[Any]) -> list[Any]:
    """One entry for each flag: the next value where it is set, else None."""
    found = iter(values)
    return [next(found) if w else None for w in wanted]


def chosen(values: Values, mask: Sequence[bool]) -> list[Any]:
    """The values whose flags are set."""
    return [x for x, wanted in zip(values, mask, strict=True) if wanted]


def inverse(mask: Sequence[bool]) -> Mask:
    """The flags negated."""
    return tuple(not wanted for wanted in mask)


def merged(mask: Sequence[bool], marked: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Interleave two lists: an entry of `marked` where the flag is set, else one of `others`."""
    first, second = iter(marked), iter(others)
    return [next(first) if wanted else next(second) for wanted in mask]


def until_stable(step: Callable[[Mask], Sequence[bool]], marked: Sequence[bool]) -> Mask:
    """The least fixed point: the flags with all that `step` adds."""
    before = tuple(marked)
    after = tuple(a or b for a, b in zip(before, step(before), strict=True))
    return before if after == before else until_stable(step, after)


def tangents_of(avals: Avals, nonzero: Mask) -> list[ShapedArray]:
    """The tangent types of the values whose flags are set."""
    return [tangent_aval(a) for a in chosen(avals, nonzero)]


def plain_types(avals: Avals) -> list[tuple[Any, Any]]:
    """Shapes and dtypes without weak types, in which a loop's operands and its body must agree."""
    return [(a.shape, a.dtype) for a in avals]
