"""The regularised incomplete beta function.

`power * fraction`, where the power is x ** a * (1 - x) ** b / beta(a, b), and the continued fraction of DiDonato and
Morris ("Algorithm 708", 1992, formula 9: the even part of DLMF 8.17.22), for x left of the mean a / (a + b); right of
it the complement, with a and b exchanged.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise.arithmetic import abs, max, min
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or
from xlamini.primitives.elementwise.comparison import eq, ge, gt, le
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp, log, log1p
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.formula import Formula, epsilon, iterate
from xlamini.primitives.elementwise.special.gamma import lgamma, not_differentiable
from xlamini.primitives.elementwise.special.stirling import LARGE, deviation, remainder
from xlamini.runtime import Array

MOST_TERMS = 2000


@elementwise(family=Formula, accepts=FLOAT, flops=30 * TRANSCENDENTAL)
def regularized_incomplete_beta(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function, elementwise, for a > 0, b > 0 and x in [0, 1]; else NaN."""


def betainc(a: Any, b: Any, x: Any) -> Array:
    """The regularised incomplete beta function, elementwise, for a > 0, b > 0 and x in [0, 1]; else NaN.

    The operands are of one shape and dtype. It has a derivative in x only.

    >>> betainc(2.0, 1.0, 0.5)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return regularized_incomplete_beta(a, b, x)


@regularized_incomplete_beta.formula
def _(a: Any, b: Any, x: Any) -> Any:
    positive = bitwise_and(gt(min(a, b), 0), max(a, b) < math.inf)
    within = bitwise_and(positive, bitwise_and(gt(x, 0), x < 1))
    edges = _at_the_edges(a, b, x)
    a, b, safe = (where(within, value, fill) for value, fill in ((a, 1.0), (b, 1.0), (x, 0.5)))
    right = safe > (a + 1) / (a + b + 2)
    out = exp(log_power(a, b, safe)) * _fraction(*_exchanged(a, b, safe, right))
    out = where(right, 1 - out, out)
    return where(within, out, edges)


def _exchanged(a: Any, b: Any, x: Any, right: Any) -> tuple[Any, Any, Any, Any]:
    y = 1 - x
    return where(right, b, a), where(right, a, b), where(right, y, x), where(right, x, y)


def log_power(a: Any, b: Any, x: Any) -> Any:
    """The logarithm of x ** a * (1 - x) ** b / beta(a, b)."""
    small, big = min(a, b), max(a, b)
    y, log_y = 1 - x, log1p(-x)
    total = a + b
    wide_big = where(big >= LARGE, big, LARGE)
    wide_small = where(small >= LARGE, small, LARGE)
    rest = remainder(small + wide_big) - remainder(wide_big)
    plain = a * log(x) + b * log_y
    both_small = plain - (lgamma(small) + lgamma(big) - lgamma(total))
    one_small = plain - lgamma(small) - small + small * log(total) + (wide_big - 0.5) * log1p(small / wide_big) + rest
    away = b * x - a * y
    both_big = rest - remainder(wide_small) + 0.5 * log(small / total * wide_big / (2 * math.pi))
    both_big = both_big - a * deviation(away / a, x * (total / a)) - b * deviation(-away / b, y * (total / b))
    return where(small >= LARGE, both_big, where(big >= LARGE, one_small, both_small))


def _fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
    """1 / (b1 + a2 / (b2 + a3 / (b3 + …))), summed as Steed does: its differences, one after the other.

    The loop has fewer arrays if it holds x and y = 1 - x as one, negative for y, and divides once more.
    """
    held = where(x < y, x, -y)

    def slant(n: Any, x: Any, y: Any) -> Any:
        return a * y - b * x + 1 + n * (1 + y)

    def step(n: Any, ratio: Any, change: Any, total: Any) -> tuple[Any, ...]:
        small = held >= 0
        x, y = where(small, held, 1 + held), where(small, 1 - held, -held)
        before, inverse = 1 / (a + 2 * n - 1), 1 / (a + 2 * n + 1)
        numerator = ((a + n - 1) * before) * ((a + b + n - 1) * before) * (n * (b - n) * x * x)
        bottom = n + n * (b - n) * x * before + (a + n) * inverse * slant(n, x, y)
        ratio = 1 / (bottom + numerator * ratio)
        change = (bottom * ratio - 1) * change
        return abs(change) > epsilon(x) * abs(total), ratio, change, total + change

    first = 1 / (a * (1 / (a + 1)) * slant(0, x, y))
    return iterate(step, first, first, first, limit=MOST_TERMS)[2]


def _at_the_edges(a: Any, b: Any, x: Any) -> Any:
    """The values where x, a or b is at an end of its domain; NaN outside it."""
    full = bitwise_or(eq(x, 1), bitwise_and(bitwise_or(eq(a, 0), eq(b, math.inf)), gt(x, 0)))
    alike = bitwise_and(eq(a, b), bitwise_or(eq(a, 0), eq(a, math.inf)))
    inside = bitwise_and(bitwise_and(ge(a, 0), ge(b, 0)), bitwise_and(ge(x, 0), le(x, 1)))
    return where(bitwise_and(inside, bitwise_not(alike)), where(full, 1.0, x * 0), math.nan)


def _density(a: Any, b: Any, x: Any) -> Any:
    """The derivative in x."""
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    return exp(_times(b - 1, log1p(-x)) + _times(a - 1, log(x)) - log_beta)


def _times(factor: Any, logarithm: Any) -> Any:
    """Their product, 0 where the factor is."""
    none = eq(factor, 0)
    return where(none, 0, factor * where(none, 1, logarithm))


regularized_incomplete_beta.derivatives(
    not_differentiable("betainc", "a", ValueError),
    not_differentiable("betainc", "b", ValueError),
    lambda a, b, x, out: _density(a, b, x),
)
