"""The logistic distribution about `loc`, stretched by `scale`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import abs, exp, log, log1p
from xlamini.runtime import Array
from xlamini.scipy.special import expit, logit
from xlamini.scipy.stats.declaration import density, distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-1.3862944, dtype=float32, weak_type=True)
    """
    z = abs(x - loc) / scale
    return -z - 2 * log1p(exp(-z)) - log(scale)


pdf = density(logpdf)


@distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return expit((x - loc) / scale)


@distribution
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`."""
    return expit((loc - x) / scale)


@distribution
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Of which number `cdf` is x; NaN unless x is from 0 to 1."""
    return logit(x) * scale + loc


@distribution
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Of which number `sf` is x; NaN unless x is from 0 to 1."""
    return loc - logit(x) * scale
