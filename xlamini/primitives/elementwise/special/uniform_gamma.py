"""Temme's expansion of the incomplete gamma functions at large a, uniform around x = a (DLMF 8.12).

    Q(a, x) = erfc(eta * sqrt(a / 2)) / 2 + exp(-a * eta ** 2 / 2) / sqrt(2 * pi * a) * S(eta, a)

with eta ** 2 / 2 = u - log1p(u), u = (x - a) / a, of the sign of u; S = c0(eta) + c1(eta) / a + c2(eta) / a ** 2 + …,
and each c a power series. Elsewhere the power series and continued fraction converge fast.
"""
from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from xlamini.core import memoised
from xlamini.primitives.elementwise.arithmetic import abs, sign
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.comparison import eq, ge, lt
from xlamini.primitives.elementwise.exponential import exp
from xlamini.primitives.elementwise.power import sqrt
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.error_function import erfc
from xlamini.primitives.elementwise.special.formula import epsilon, horner
from xlamini.primitives.elementwise.special.stirling import deviation, remainder


def is_near_large(a: Any, x: Any) -> Any:
    """True where the expansion is used."""
    return bitwise_and(ge(a, 1e3 if epsilon(a) < 1e-10 else 1e2), lt(abs(x - a), 0.4 * a))


def uniform_tails(a: Any, x: Any, needed: Any) -> tuple[Any, Any]:
    """P(a, x) and Q(a, x) where needed."""
    a, _, eta = _variables(a, x, needed)
    rest = exp(-a * eta * eta / 2) / sqrt(2 * math.pi * a) * _correction(eta, a)[0]
    z = eta * sqrt(a / 2)
    return erfc(-z) / 2 - rest, erfc(z) / 2 + rest


def uniform_slope(a: Any, x: Any, needed: Any) -> Any:
    """The derivative in a of x at a fixed P(a, x), where needed: of the formula above, over the density."""
    a, u, eta = _variables(a, x, needed)
    ratio = where(eq(eta, 0), 1.0, u / where(eq(eta, 0), 1.0, eta))
    value, in_eta, in_a = _correction(eta, a)
    inner = ratio - eta / 2 + value * (u - eta * eta / 2 - 0.5 / a) - in_eta * ratio / a + in_a
    return (1 + u) * exp(remainder(a)) * inner


def _variables(a: Any, x: Any, needed: Any) -> tuple[Any, Any, Any]:
    a, x = where(needed, a, 1e4), where(needed, x, 1e4)
    u = (x - a) / a
    return a, u, sign(u) * sqrt(2 * deviation(u, 1 + u))


def _correction(eta: Any, a: Any) -> tuple[Any, Any, Any]:
    """S, its derivative in eta, and its derivative in a."""
    rows = _coefficients(18 if epsilon(a) < 1e-10 else 10)
    slopes = [[n * c for n, c in reversed(list(enumerate(reversed(row)))) if n] for row in rows]
    values = [horner(eta, row) for row in reversed(rows)]
    falling = [-k * v for k, v in zip(reversed(range(len(rows))), values, strict=True)]
    inverse = 1 / a
    in_eta = horner(inverse, [horner(eta, row) for row in reversed(slopes)])
    return horner(inverse, values), in_eta, horner(inverse, falling) * inverse


@memoised("helper: coefficients of gammainc", 64)
def _coefficients(count: int) -> list[list[float]]:
    """The coefficients of c0, c1, … in powers of eta, highest first: `count` of them for c0, 4 fewer for each next one.

    DLMF 8.12.10 to 8.12.13; that of gamma(a)'s expansion, DLMF 5.11.3, comes in at eta = 0.
    """
    alpha = [Fraction(0), Fraction(1)]
    for n in range(2, count + 20):
        alpha.append((alpha[n - 1] - sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))) / (n + 1))
    row = [n * alpha[n] for n in range(2, count + 20)]
    row[0] -= 1
    rows = [row]
    for g in (Fraction(1, 12), Fraction(1, 288), Fraction(-139, 51840), Fraction(-571, 2488320)):
        k = len(rows)
        before = rows[-1]
        rows.append([(-1) ** k * g * rows[0][n] + (n + 2) * before[n + 2] for n in range(len(before) - 2)])
    kept = [row[: count - 4 * k] for k, row in enumerate(rows) if count > 4 * k]
    return [[float(c) for c in reversed(row)] for row in kept]
