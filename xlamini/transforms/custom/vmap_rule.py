"""The user's batching rule as a jaxpr.

    operands, those in `batched` with the mapped axis first  ->  outputs, and which of them have the axis, first too
"""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.core import Avals, Axis, Jaxpr, ShapedArray, Values
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batched_aval
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import jvp
from xlamini.primitives import move_batch_dim
from xlamini.staging import Mask, chosen
from xlamini.transforms.custom.call_site import CallSite, CustomRule
from xlamini.transforms.custom.rule_contract import Contract


class Vmap(NamedTuple):
    """A rule as a jaxpr, and which outputs are batched."""

    jaxpr: Jaxpr
    out_batched: Mask


class VmapRule(CustomRule):
    """The param `rule` of a call. Its operands are `num_closed` values that it closes over, then the call's arguments.

    `avals` are the types of the operands of one example.
    """

    avals: Avals
    contract: Contract
    num_closed: int

    def __init__(self, contract: Contract, avals: Avals, num_closed: int):
        self.contract, self.avals, self.num_closed = contract, avals, num_closed

    def traced(self, axis: Axis, batched: Mask) -> Vmap:
        raise NotImplementedError

    def batched_avals(self, axis: Axis, batched: Mask) -> list[ShapedArray]:
        return [batched_aval(a, axis, 0 if b else None) for a, b in zip(self.avals, batched, strict=True)]


class UserVmap(VmapRule):
    """The user's rule at one call."""

    def __init__(self, contract: Contract, site: CallSite):
        super().__init__(contract, site.avals, len(site.closed))
        self.site = site

    def traced(self, axis: Axis, batched: Mask) -> Vmap:
        site, contract, out_batched = self.site, self.contract, []
        in_batched = site.types.args(batched[self.num_closed :])

        def flat(closed: Values, args: Values) -> list[Any]:
            result = contract.rule(axis.size, list(in_batched), *site.types.args(args))
            outs, marks = contract.vmap(axis, result)
            out_batched.extend(marks)
            return outs

        avals = self.batched_avals(axis, batched)
        jaxpr = site.trace(contract, flat, avals, names=site.names(contract))
        return Vmap(jaxpr, tuple(out_batched))


class JvpOfVmap(VmapRule):
    """The rule of a function with its tangents: the derivative of the function's rule."""

    nonzero: Mask
    nonzero_out: Mask
    rule: VmapRule

    def __init__(self, rule: VmapRule, nonzero: Mask, nonzero_out: Mask):
        super().__init__(rule.contract, [*rule.avals, *chosen(rule.avals, nonzero)], rule.num_closed)
        self.rule, self.nonzero, self.nonzero_out = rule, nonzero, nonzero_out

    def traced(self, axis: Axis, batched: Mask) -> Vmap:
        count = len(self.nonzero)
        tangents = iter(batched[count:])
        # A primal and its tangent have one shape, so either both have the mapped axis or neither.
        either = [b | (nz and next(tangents)) for b, nz in zip(batched[:count], self.nonzero, strict=True)]
        due = [*either, *chosen(either, self.nonzero)]
        jaxpr, out_batched = self.rule.traced(axis, tuple(either))
        both, nonzero_out = jvp(jaxpr, self.nonzero, self.nonzero_out)

        def flat(*operands: Any) -> list[Any]:
            moved = [_with_axis(x, axis, d and not b) for x, b, d in zip(operands, batched, due, strict=True)]
            outs = evaluate(both, moved)
            wanted = chosen(self.nonzero_out, nonzero_out)
            return [*outs[: len(nonzero_out)], *chosen(outs[len(nonzero_out) :], wanted)]

        pushed, _ = build(flat, self.batched_avals(axis, batched), repr(self))
        return Vmap(pushed, (*out_batched, *chosen(out_batched, self.nonzero_out)))


def _with_axis(x: Any, axis: Axis, lacks_axis: bool) -> Any:
    return move_batch_dim(x, axis.size, None, 0) if lacks_axis else x
