"""The Laplace distribution about `loc`, whose density falls off by e over `scale`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import abs, exp, log, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import density, distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0, scale=0.5)
    Array(-0., dtype=float32, weak_type=True)
    """
    return -abs(x - loc) / scale - log(2 * scale)


pdf = density(logpdf)


@distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    half = exp(-abs(x - loc) / scale) / 2
    return where(x < loc, half, 1 - half)
