"""The Cauchy distribution wrapped round the circle, from 0 to 2 pi, the more narrow the nearer `c` is to 1.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import cos, exp, inf, log, nan, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import distribution, finite
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density; NaN unless c is between 0 and 1.

    >>> logpdf(0.0, 0.5).round(3)
    Array(-0.739, dtype=float32, weak_type=True)
    """
    density = log(1 - c * c) - math.log(2 * math.pi) - log(1 + c * c - 2 * c * cos(x))
    return where((c > 0) & (c < 1), where((x < 0) | (x > 2 * math.pi), -inf, density), nan)


@distribution
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, jnp.pi]), 0.5)
    Array([0.47746485, 0.05305165], dtype=float32)
    """
    return exp(logpdf(finite(x), c))
