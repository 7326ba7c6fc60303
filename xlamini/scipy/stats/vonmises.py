"""The von Mises distribution of angles about 0, the more narrow the larger `kappa` is.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import cos, exp, log, nan, where
from xlamini.runtime import Array
from xlamini.scipy.special import i0e
from xlamini.scipy.stats.declaration import distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density; NaN unless kappa is positive.

    >>> logpdf(0.0, 2.0).round(3)
    Array(-0.662, dtype=float32, weak_type=True)
    """
    return where(kappa >= 0, kappa * (cos(x) - 1) - math.log(2 * math.pi) - log(i0e(kappa)), nan)


@distribution
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, jnp.pi]), 2.0)
    Array([0.5158854 , 0.00944877], dtype=float32)
    """
    return exp(logpdf(x, kappa))
