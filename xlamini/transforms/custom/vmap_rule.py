"""Batching rules that a user wrote, as jaxprs.

    operands, those marked with the mapped axis first  ->  outputs, and which of them have the axis, first too
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.primitive import Axis
from xlamini.core.pytree import first_difference, flatten_from_user, unflatten
from xlamini.core.structure import RewriteRule
from xlamini.core.tracer import build
from xlamini.interpreters.batch import batched_aval
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import jvp
from xlamini.primitives.batch_ops import move_batch_dim
from xlamini.primitives.convert import convert
from xlamini.staging.call.higher_order import Mask, chosen
from xlamini.staging.trace.arguments import name_of
from xlamini.transforms.custom.closures import stand_for
from xlamini.transforms.custom.customized import CustomCall
from xlamini.transforms.custom.rule_checks import RuleName, checked_pair, checked_tree, checked_types


class Ruled(NamedTuple):
    """A rule as a jaxpr, and which outputs are batched."""

    jaxpr: Jaxpr
    out_batched: Mask


class VmapRule(RewriteRule):
    """A batching rule. `avals` are the types of the operands for one example."""

    name: RuleName
    avals: Sequence[ShapedArray]

    def traced(self, axis: Axis, batched: Mask) -> Ruled:
        raise NotImplementedError

    def __repr__(self) -> str:
        return name_of(self.name.rule)

    def batched_avals(self, axis: Axis, batched: Mask) -> list[ShapedArray]:
        return [batched_aval(a, axis, 0 if b else None) for a, b in zip(self.avals, batched, strict=True)]


class UserVmap(VmapRule):
    """The user's rule at one call. Operands: what the function captured, what the rule does (`closed`), arguments."""

    def __init__(self, rule: Callable[..., Any], call: CustomCall):
        self.name = RuleName("custom_vmap", rule, call.name, ValueError)
        self.in_tree, self.names = call.in_tree, call.names
        self.out_tree, self.out_avals = call.traced.out_tree, call.traced.jaxpr.out_avals
        self.variables, self.captured = tuple(x.variable for x in call.closed), len(call.traced.captured)
        self.avals = call.jaxpr.in_avals

    def traced(self, axis: Axis, batched: Mask) -> Ruled:
        first = self.captured + len(self.variables)
        out_batched: list[bool] = []

        def flat(*operands: Any) -> list[Any]:
            stand_for(self.variables, operands[self.captured : first])
            args = unflatten(self.in_tree, operands[first:])[0]
            marks = unflatten(self.in_tree, batched[first:])[0]
            outs, found = self._checked(axis, self.name.rule(axis.size, list(marks), *args))
            out_batched.extend(found)
            return outs

        names = [*[f"a value that {self!r} closes over"] * first, *self.names]
        jaxpr, _ = build(flat, self.batched_avals(axis, batched), repr(self), names)
        return Ruled(jaxpr, tuple(out_batched))

    def _checked(self, axis: Axis, result: Any) -> tuple[list[Any], list[bool]]:
        """Flat outputs, and which are batched; ValueError for what does not fit."""
        out, marks = checked_pair(self.name, result, "output, out_batched")
        leaves = checked_tree(self.name, "output", out, self.out_tree)
        batched = self._checked_marks(marks)
        dims = [0 if b else None for b in batched]
        wanted = [batched_aval(a, axis, d) for a, d in zip(self.out_avals, dims, strict=True)]
        like = f"a map of {self.name.of} over {axis.size} examples, with this out_batched,"
        checked_types(self.name, "output", leaves, self.out_tree, wanted, like)
        return [convert(x, a.dtype, a.weak_type) for x, a in zip(leaves, wanted, strict=True)], batched

    def _checked_marks(self, marks: Any) -> list[bool]:
        found, tree = flatten_from_user(marks)
        if tree != self.out_tree:
            where = first_difference(self.out_tree, tree, ("output", "out_batched"))
            raise ValueError(f"{self.name} must say for each leaf of the output whether it is batched: {where}")
        for mark in found:
            if not isinstance(mark, bool | np.bool_):
                raise ValueError(
                    f"{self.name} must return bools in out_batched, True where an output has the mapped axis, but it "
                    f"returned {mark!r}"
                )
        return list(map(bool, found))


class PushedVmap(VmapRule):
    """The rule of a function with its tangents: the given rule with its tangents."""

    def __init__(self, rule: VmapRule, nonzero: Mask, nonzero_out: Mask):
        self.rule, self.name, self.nonzero, self.nonzero_out = rule, rule.name, nonzero, nonzero_out
        self.avals = [*rule.avals, *chosen(rule.avals, nonzero)]

    def traced(self, axis: Axis, batched: Mask) -> Ruled:
        count = len(self.nonzero)
        moving = iter(batched[count:])
        # A primal and its tangent are of one shape.
        either = [b | (nz and next(moving)) for b, nz in zip(batched[:count], self.nonzero, strict=True)]
        wanted = [*either, *chosen(either, self.nonzero)]
        ruled = self.rule.traced(axis, tuple(either))
        pushed, found = jvp(ruled.jaxpr, self.nonzero, self.nonzero_out)

        def flat(*operands: Any) -> list[Any]:
            moved = [_with_axis(x, axis, b, w) for x, b, w in zip(operands, batched, wanted, strict=True)]
            outs = evaluate(pushed, moved)
            due = chosen(self.nonzero_out, found)
            return [*outs[: len(found)], *chosen(outs[len(found) :], due)]

        jaxpr, _ = build(flat, self.batched_avals(axis, batched), repr(self))
        return Ruled(jaxpr, (*ruled.out_batched, *chosen(ruled.out_batched, self.nonzero_out)))


def _with_axis(x: Any, axis: Axis, batched: bool, wanted: bool) -> Any:
    return move_batch_dim(x, axis.size, None, 0) if wanted and not batched else x


class Further(VmapRule):
    """A rule for a function with further operands in front, which it does not look at."""

    def __init__(self, rule: VmapRule, avals: Sequence[ShapedArray]):
        self.rule, self.name, self.further = rule, rule.name, len(avals)
        self.avals = [*avals, *rule.avals]

    def traced(self, axis: Axis, batched: Mask) -> Ruled:
        ruled = self.rule.traced(axis, batched[self.further :])

        def flat(*operands: Any) -> list[Any]:
            return evaluate(ruled.jaxpr, operands[self.further :])

        jaxpr, _ = build(flat, self.batched_avals(axis, batched), repr(self))
        return Ruled(jaxpr, ruled.out_batched)
