"""Stirling's remainder: the gamma function divided by Stirling's formula, and powers that don't lose digits to it.

Loader, "Fast and accurate computation of binomial probabilities" (2000): gamma and binomial densities at large
arguments are differences of large logarithms, unless what cancels is taken out before.
"""
from __future__ import annotations

import functools
from typing import Any

from xlamini.primitives.elementwise.arithmetic import abs
from xlamini.primitives.elementwise.exponential import log, log1p
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.formula import epsilon, horner
from xlamini.primitives.elementwise.special.gamma import lgamma

LARGE = 10.0
"""From here on the expansion of `remainder` is precise."""

_BERNOULLI = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)


def remainder(a: Any) -> Any:
    """`log(gamma(a)) - (a - 1 / 2) * log(a) + a - log(2 * pi) / 2` for a of at least LARGE (DLMF 5.11.1)."""
    return horner(1 / (a * a), _BERNOULLI) / a


def digamma_excess(a: Any) -> Any:
    """`digamma(a + 1) - log(a)` for a of at least LARGE (DLMF 5.11.2)."""
    return 0.5 / a - horner(1 / (a * a), _DIGAMMA) / (a * a)


def deviation(u: Any, ratio: Any) -> Any:
    """`u - log1p(u)`, precise also near 0, where it is u ** 2 / 2; `ratio` is 1 + u, precise where that is small."""
    v = u / (2 + u)
    square = v * v
    terms = 16 if epsilon(u) < 1e-10 else 7
    near = u * v - 2 * v * square * horner(square, [1 / (2 * k + 3) for k in reversed(range(terms))])
    return where(abs(u) < 0.45, near, u - log(ratio))


def log_gamma_1p(a: Any) -> Any:
    """`lgamma(1 + a)` for a >= 0, precise also near 0, where it is -0.5772 * a (DLMF 5.7.3)."""
    near = a * (horner(a, _near_one()) + (1 - _EULER)) - log1p(a)
    return where(a < 0.4, near, lgamma(1 + a))


_EULER = 0.5772156649015329


@functools.cache
def _near_one() -> list[float]:
    """Taylor coefficients of `lgamma(1 + a) + log1p(a)`, divided by a, but for the constant one."""
    return [*((-1) ** k * _zeta_minus_1(k) / k for k in range(22, 1, -1)), 0.0]


def _zeta_minus_1(k: int) -> float:
    """The sum of n ** -k over n = 2, 3, …; its tail by Euler's and Maclaurin's formula."""
    head = sum(n**-k for n in range(2, 100))
    tail = 100.0 ** (1 - k) / (k - 1) + 100.0**-k / 2 + k * 100.0 ** (-k - 1) / 12
    return head + tail - k * (k + 1) * (k + 2) * 100.0 ** (-k - 3) / 720


def log_ratio(x: Any, a: Any) -> Any:
    """`log(x / a)`, precise also where x is near a."""
    u = (x - a) / a
    return u - deviation(u, x / a)
