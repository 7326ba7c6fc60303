"""The rules of one call beside finite differences of the function, under the flag `debug_custom_rules`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core.dtypes import float0
from xlamini.core.tangents import is_differentiable
from xlamini.staging.call.higher_order import Mask, chosen, inverse, merged, with_none
from xlamini.staging.trace.tracing import Trace
from xlamini.transforms.custom.check_rules import Numbers, check_cotangents, check_tangents, evaluated
from xlamini.transforms.custom.point import values_at
from xlamini.transforms.custom.rule_checks import RuleName

Flat = Callable[[list[Any]], list[Any]]


def compare_jvp(rule: Any, fun: Trace, pushed: Any, nonzero: Mask) -> None:
    """ValueError if the rule of a call, as the jaxpr in `pushed`, gives other tangents than `fun` has."""
    numbers, operands, function = _sample(rule, fun)
    closed, pairs = len(rule.closed), zip(rule.avals, nonzero, strict=True)
    slopes = [numbers.tangent(a) if nz else np.zeros(a.shape, float0) for a, nz in pairs]

    def push(primals: list[Any], tangents: list[Any]) -> list[Any]:
        moving = chosen([*slopes[:closed], *tangents], nonzero)
        flat = evaluated(numbers, pushed.jaxpr, [*operands[:closed], *primals, *moving])
        still = [np.zeros(a.shape) for a in chosen(rule.out_avals, inverse(pushed.nonzero_out))]
        return merged(pushed.nonzero_out, flat[len(rule.out_avals) :], still)

    check_tangents(rule.name, function, push, operands[closed:], slopes[closed:], rule.out_tree)


def compare_vjp(rule: Any, fun: Trace, forward: Any) -> None:
    """ValueError if the rules of a call, with the one for fwd as the jaxpr in `forward`, give other cotangents."""
    numbers, operands, function = _sample(rule, fun)
    closed, call = len(rule.closed), rule.call
    pulled = forward.backward.traced((True,) * sum(map(is_differentiable, call.out_avals)))

    def pull(primals: list[Any], cts: list[Any]) -> list[Any]:
        given = [*map(numbers.of, forward.captured), *operands[:closed], *primals]
        residuals = evaluated(numbers, forward.jaxpr, given)[forward.count :]
        slopes = [ct for ct in cts if ct.dtype != float0]
        found = evaluated(numbers, pulled.jaxpr, [*map(numbers.of, pulled.captured), *residuals, *slopes])
        return with_none(pulled.nonzero, found)

    name = RuleName("custom_vjp (bwd)", rule.rules.bwd, call.name)
    check_cotangents(name, function, pull, operands[closed:], call.names, numbers)


def _sample(rule: Any, fun: Trace) -> tuple[Numbers, list[Any], Flat]:
    """Numbers for the operands of a rule, those of its call where they are known, and the function on numbers."""
    numbers, values = Numbers(), values_at(rule.point)
    captured = list(map(numbers.of, fun.captured))
    own = [*rule.now, *[None] * (len(rule.avals) - len(rule.now))]
    operands = map(numbers.like, rule.avals, own) if values is None else map(numbers.of, values)

    def function(primals: Sequence[Any]) -> list[Any]:
        return evaluated(numbers, fun.jaxpr, [*captured, *primals])

    return numbers, list(operands), function
