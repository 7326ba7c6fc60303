"""Owen's T function."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.primitives import abs, eq, exp, max, min, sign, where
from xlamini.primitives.elementwise.special.error_function import erf, erfc
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.typing import ArrayLike


def _in_h(h: Any, a: Any, out: Any) -> Any:
    return -erf(a * h * math.sqrt(0.5)) * exp(-h * h / 2) / (2 * math.sqrt(2 * math.pi))


def _in_a(h: Any, a: Any, out: Any) -> Any:
    return exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a))


@special(_in_h, _in_a)
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function: how probable X > h and 0 < Y < a * X are, of two independent standard normal numbers.

    >>> owens_t(1.0, 1.0)
    Array(0.06674189, dtype=float32)
    """
    size, slope = abs(h), abs(a)
    steep = slope > 1
    product = where(eq(size, 0), 0.0, size * slope)
    inner = _integral(where(steep, product, size), where(steep, 1 / where(steep, slope, 1.0), slope))
    # Owen (1956), formula 2.3: what is left of T for a slope above 1, in tails of the normal distribution.
    tail, other = erfc(size * math.sqrt(0.5)) / 2, erfc(product * math.sqrt(0.5)) / 2
    return sign(a) * where(steep, (tail + other) / 2 - tail * other - inner, inner)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def _integral(h: Any, a: Any) -> Any:
    """The defining integral over x from 0 to a, at most 1, by Gauss' rule, or to where exp(-(h * x) ** 2 / 2) is 0."""
    end = min(a, 9 / max(h, 1.0))
    finite = min(h, 1e3)
    exponent = -finite * finite / 2
    total: Any = 0.0
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        x = end * ((node + 1) / 2)
        factor = 1 + x * x
        total = total + weight * exp(exponent * factor) / factor
    return where(eq(h, h), total * end / (4 * math.pi), h)
