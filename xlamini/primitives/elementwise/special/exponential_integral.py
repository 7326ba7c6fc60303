"""The exponential integral of order n: a power series up to 1, the continued fraction of `igammac` beyond."""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise.arithmetic import max
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.elementwise.comparison import eq, ge, gt, le
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp, log
from xlamini.primitives.elementwise.rounding import floor
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.formula import Formula, epsilon
from xlamini.primitives.elementwise.special.gamma import digamma, lgamma, not_differentiable
from xlamini.primitives.elementwise.special.incomplete_gamma import upper_sum


@elementwise(family=Formula, accepts=FLOAT, flops=20 * TRANSCENDENTAL)
def expn(n: Any, x: Any) -> Any:
    """The integral of `exp(-x * t) / t ** n` over t from 1 to infinity, elementwise, for whole n >= 0 and x >= 0."""


@expn.formula
def _(n: Any, x: Any) -> Any:
    small = bitwise_and(gt(x, 0), le(x, 1))
    order = max(n, 1.0)
    out = where(small, _series(order, where(small, x, 1.0)), _fraction(order, where(gt(x, 1), x, 2.0)))
    out = where(eq(n, 0), exp(-x) / x, out)
    out = where(eq(x, 0), where(gt(n, 1), 1 / (max(n, 2.0) - 1), math.inf), out)
    out = where(bitwise_or(eq(x, math.inf), eq(n, math.inf)), 0.0, out)
    return where(bitwise_and(bitwise_and(ge(n, 0), eq(floor(n), n)), ge(x, 0)), out, math.nan)


def _slope(n: Any, x: Any, *, out: Any) -> Any:
    return where(eq(n, 0), -out * (1 + 1 / x), -expn(max(n - 1, 0.0), x))


expn.derivatives(not_differentiable("expn", "n"), _slope)


def _series(n: Any, x: Any) -> Any:
    """DLMF 8.19.8."""
    total, power = x * 0, x * 0 + 1
    for k in range(20 if epsilon(x) < 1e-10 else 12):
        singular = eq(n, k + 1)
        total = total - where(singular, 0.0, power / (k + 1 - where(singular, 0.0, n)))
        power = power * (-x / (k + 1))
    even = eq(floor(n / 2) * 2, n)
    logarithmic = exp((n - 1) * log(x) - lgamma(n)) * (digamma(n) - log(x))
    return total + where(even, -logarithmic, logarithmic)


def _fraction(n: Any, x: Any) -> Any:
    return exp(-x) * upper_sum(1 - n, x)
