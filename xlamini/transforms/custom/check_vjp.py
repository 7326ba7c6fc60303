"""The rules of a custom_vjp function beside finite differences, under the flag `debug_custom_rules`."""
from __future__ import annotations

from typing import Any

from xlamini.core.dtypes import float0
from xlamini.core.tangents import is_differentiable
from xlamini.transforms.custom.check_rules import Numbers, check_cotangents, evaluated
from xlamini.transforms.custom.point import values_at
from xlamini.transforms.custom.rule_checks import RuleName
from xlamini.transforms.higher_order import with_none
from xlamini.transforms.tracing import Trace


def compare(rule: Any, fun: Trace, forward: Any) -> None:
    """ValueError if what the rules of a call give is not the derivative of the function, traced as `fun`."""
    numbers, call, closed = Numbers(), rule.call, len(rule.closed)
    captured, values = list(map(numbers.of, fun.captured)), values_at(rule.point)
    avals, own = [*(t.aval for t in rule.closed), *call.in_avals], [*rule.now, *[None] * len(call.in_avals)]
    operands = list(map(numbers.of, values) if values is not None else map(numbers.like, avals, own))
    pulled = forward.backward.traced((True,) * sum(map(is_differentiable, call.out_avals)))

    def function(primals: list[Any]) -> list[Any]:
        return evaluated(numbers, fun.jaxpr, [*captured, *primals])

    def pull(primals: list[Any], cts: list[Any]) -> list[Any]:
        given = [*map(numbers.of, forward.captured), *operands[:closed], *primals]
        residuals = evaluated(numbers, forward.jaxpr, given)[forward.count :]
        slopes = [ct for ct in cts if ct.dtype != float0]
        found = evaluated(numbers, pulled.jaxpr, [*map(numbers.of, pulled.captured), *residuals, *slopes])
        return with_none(pulled.nonzero, found)

    name = RuleName("custom_vjp (bwd)", rule.rules.bwd, call.name)
    check_cotangents(name, function, pull, operands[closed:], call.names, numbers)
