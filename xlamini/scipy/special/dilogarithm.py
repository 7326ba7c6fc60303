"""Spence's function: the dilogarithm of 1 - x."""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives import eq, ge, gt, log, log1p, lt, where
from xlamini.primitives.elementwise.special.formula import horner
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.typing import ArrayLike


def _slope(x: Any, out: Any) -> Any:
    at_one = eq(x, 1)
    # Finite at 0 too, as in JAX, so that masked elements don't spoil a sum.
    return where(at_one, -1.0, log(where(eq(x, 0), 1.0, x)) / where(at_one, 1.0, 1 - x))


@special(_slope)
def spence(x: ArrayLike) -> Array:
    """The integral of `log(t) / (1 - t)` from 1 to each element, for x >= 0; NaN for negative ones.

    >>> spence(0.0)
    Array(1.644934, dtype=float32)
    """
    low, high = lt(x, 0.5), gt(x, 2.0)
    # DLMF 25.12.4 and 25.12.6 bring the logarithm in the series between -log(2) and log(2).
    u = where(low, -log1p(-where(low, x, 0.25)), where(high, log1p(-1 / where(high, x, 2.0)), -log(where(low, 1.0, x))))
    rest = _series(u)
    left = math.pi**2 / 6 + log(where(low, x, 0.25)) * u - rest
    logarithm = log(where(high, x - 1, 1.0))
    right = -(math.pi**2) / 6 - logarithm * logarithm / 2 - rest
    out = where(low, where(eq(x, 0), math.pi**2 / 6, left), where(high, right, rest))
    return where(eq(x, math.inf), -math.inf, where(ge(x, 0.0), out, math.nan))


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _series(u: Any) -> Any:
    """The dilogarithm of 1 - exp(-u), by Bernoulli's numbers."""
    terms = [b / math.factorial(2 * k + 3) for k, b in enumerate(_BERNOULLI)]
    square = u * u
    return u - square / 4 + u * square * horner(square, terms[::-1])
