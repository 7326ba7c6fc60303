"""The regularised incomplete gamma functions: P(a, x), which grows from 0 to 1 with x, and Q = 1 - P.

Both are `density * sum`, where the density is x ** a * exp(-x) / gamma(a + 1). Left of the peak P's sum is a power
series (DLMF 8.11.4), right of it that of Q a continued fraction (DLMF 8.9.2), summed as Gautschi does ("A
computational procedure for incomplete gamma functions", 1979): one division a term. The other function is the
complement. Near the peak at large a both would take long; there Temme's expansion has them (uniform_gamma.py).
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise.arithmetic import abs, max
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or
from xlamini.primitives.elementwise.comparison import eq, ge, gt, le, lt
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp, expm1, log
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.formula import Formula, epsilon, iterate
from xlamini.primitives.elementwise.special.gamma import lgamma
from xlamini.primitives.elementwise.special.stirling import LARGE, deviation, log_gamma_1p, remainder
from xlamini.primitives.elementwise.special.uniform_gamma import is_near_large, uniform_tails

MOST_TERMS = 3000


@elementwise(family=Formula, accepts=FLOAT, flops=20 * TRANSCENDENTAL)
def igamma(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function, elementwise: P(a, x), for a > 0 and x >= 0; else NaN.

    >>> igamma(1.0, 1.0)
    Array(0.6321205, dtype=float32, weak_type=True)
    """


@elementwise(family=Formula, accepts=FLOAT, flops=20 * TRANSCENDENTAL)
def igammac(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function, elementwise: Q(a, x) = 1 - P(a, x), precise where it is small.

    >>> igammac(1.0, 1.0)
    Array(0.3678795, dtype=float32, weak_type=True)
    """


def log_density(a: Any, x: Any) -> Any:
    """The logarithm of x ** a * exp(-x) / gamma(a + 1)."""
    large = where(a >= LARGE, a, LARGE)
    u = (x - large) / large
    far = -large * deviation(u, x / large) - remainder(large) - 0.5 * log(2 * math.pi * large)
    return where(a >= LARGE, far, a * log(x) - x - lgamma(a + 1))


def lower_sum(a: Any, x: Any) -> Any:
    """The sum over n of x ** n / ((a + 1) … (a + n)), from n = 0."""

    def step(n: Any, term: Any, total: Any) -> tuple[Any, Any, Any]:
        term = term * x / (a + n)
        return term > epsilon(x) * total, term, total + term

    one = where(eq(x, x), 1.0, x)
    return iterate(step, one, one, limit=MOST_TERMS)[1]


def upper_sum(a: Any, x: Any) -> Any:
    """The continued fraction 1 / (b0 + a1 / (b1 + a2 / (b2 + …))), a_n = n * (a - n) and b_n = x + 1 - a + 2 * n."""
    first = x + 1 - a

    def step(n: Any, ratio: Any, term: Any, total: Any) -> tuple[Any, Any, Any, Any]:
        b = first + 2 * n
        share = n * (n - a) * (1 + ratio)
        ratio = share / (b * (b - 2) - share)
        term = ratio * term
        return abs(term) > epsilon(x) * total, ratio, term, total + term

    one = where(eq(x, x), 1.0, x)
    return iterate(step, one - 1, one, one, limit=MOST_TERMS)[2] / first


def regions(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Masks of the domains of the three methods: Temme's expansion, the continued fraction, the power series."""
    near_large = is_near_large(a, x)
    above = bitwise_and(bitwise_and(gt(x, 1.1), gt(x, a)), bitwise_not(near_large))
    return near_large, above, bitwise_not(bitwise_or(near_large, above))


@igamma.formula
def _(a: Any, x: Any) -> Any:
    near_large, above, below = regions(a, x)
    out = where(above, 1 - _upper_tail(a, x, above), _lower_tail(a, x, below))
    out = where(near_large, uniform_tails(a, x, near_large)[0], out)
    return _at_the_edges(a, x, out, 0.0, 1.0)


@igammac.formula
def _(a: Any, x: Any) -> Any:
    near_large, above, below = regions(a, x)
    small = bitwise_and(below, bitwise_and(le(x, 1.1), lt(a, max(x, 0.3))))
    out = where(above, _upper_tail(a, x, above), 1 - _lower_tail(a, x, bitwise_and(below, bitwise_not(small))))
    out = where(small, _upper_near_zero(a, x, small), out)
    out = where(near_large, uniform_tails(a, x, near_large)[1], out)
    return _at_the_edges(a, x, out, 1.0, 0.0)


def _lower_tail(a: Any, x: Any, needed: Any) -> Any:
    a, x = where(needed, a, 1.0), where(needed, x, 0.0)
    return exp(log_density(a, x)) * lower_sum(a, x)


def _upper_tail(a: Any, x: Any, needed: Any) -> Any:
    a, x = where(needed, a, 1.0), where(needed, x, 2.0)
    return exp(log_density(a, x)) * a * upper_sum(a, x)


def _upper_near_zero(a: Any, x: Any, needed: Any) -> Any:
    """Q for x <= 1.1 and small a, without the cancellation in 1 - P where a is small (DLMF 8.7.1).

    x ** -a * gamma(a + 1) * P = 1 + a * sum of (-x) ** n / (n! * (a + n)).
    """
    a, x = where(needed, a, 1.0), where(needed, x, 1.0)
    power, total = -x, -x / (a + 1)
    for n in range(2, 20 if epsilon(x) < 1e-10 else 12):
        power = power * (-x / n)
        total = total + power / (a + n)
    exponent = a * log(x) - log_gamma_1p(a)
    return -expm1(exponent) - a * exp(exponent) * total


def _at_the_edges(a: Any, x: Any, out: Any, start: float, end: float) -> Any:
    """The result, where x or a is 0 or infinite too; NaN outside the domain."""
    out = where(bitwise_or(eq(x, 0), eq(a, math.inf)), start, out)
    out = where(bitwise_or(eq(x, math.inf), eq(a, 0)), end, out)
    inside = bitwise_and(bitwise_and(ge(a, 0), ge(x, 0)), bitwise_not(bitwise_and(eq(a, x), _extreme(a))))
    return where(inside, out, math.nan)


def _extreme(a: Any) -> Any:
    return bitwise_or(eq(a, 0), eq(a, math.inf))
