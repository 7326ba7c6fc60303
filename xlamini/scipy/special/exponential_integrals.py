"""The exponential integrals: exp1, expi and those of every order, expn."""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives import eq, exp, gt, log, lt, max, min, stop_gradient, where
from xlamini.primitives.base.elementwise import neg
from xlamini.primitives.elementwise.special.exponential_integral import expn as expn_p
from xlamini.primitives.elementwise.special.formula import horner
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.scipy.special.fit_terms import fitted
from xlamini.scipy.special.fits import EXP1, EXPI_6, EXPI_12, EXPI_24
from xlamini.typing import ArrayLike

_EULER = 0.5772156649015329


@special(lambda x, out: -exp(-x) / x)
def exp1(x: ArrayLike) -> Array:
    """The integral of `exp(-t) / t` from x to infinity, for positive x; NaN for negative ones.

    >>> exp1(1.0)
    Array(0.21938396, dtype=float32)
    """
    return _exp1(x)


@special(lambda x, out: exp(x) / x)
def expi(x: ArrayLike) -> Array:
    """The integral of `exp(t) / t` from minus infinity to x, the principal value; minus infinity at 0.

    >>> expi(1.0)
    Array(1.8951178, dtype=float32)
    """
    x_up = max(x, 0.0)
    series = _EULER + log(x_up) + x_up * horner(min(x_up, 6.0), _SERIES)
    outer = max(x, 6.0)
    scaled = where(outer <= 24, fitted(24 / outer - 3, EXPI_6), 0.0)
    scaled = where(outer > 12, fitted(48 / outer - 3, EXPI_12), scaled)
    scaled = where(outer > 24, fitted(48 / outer - 1, EXPI_24), scaled)
    far = where(eq(x, math.inf), x, exp(outer / 2) / outer * scaled * exp(outer / 2))
    return where(lt(x, 0.0), -_exp1(neg(x)), where(gt(x, 6.0), far, where(eq(x, x), series, x)))


_SERIES = [1 / (k * math.factorial(k)) for k in range(42, 0, -1)]


def _exp1(x: Any) -> Any:
    inner, outer = min(x, 1.0), max(x, 1.0)
    near = -_EULER - log(inner) + inner * horner(-inner, _SERIES[-20:])
    far = exp(-outer) / (outer + 1) * fitted(1 - 6 / (outer + 2), EXP1)
    return where(x > 1, far, near)


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The integral of `exp(-x * t) / t ** n` over t from 1 to infinity, for whole n >= 0 and x >= 0; else NaN.

    It has a derivative in x only.

    >>> expn(2, 1.0)
    Array(0.1484955, dtype=float32)
    """
    return _expn(n, x)


@special()
def _expn(n: Any, x: Any) -> Any:
    return expn_p(stop_gradient(n), x)
