"""The chi-squared distribution of `df` degrees of freedom: a gamma distribution of half the shape, twice as wide."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.runtime import Array
from xlamini.scipy.stats import gamma
from xlamini.scipy.stats.declaration import distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(2.0, 2.0)
    Array(-1.6931472, dtype=float32, weak_type=True)
    """
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


@distribution
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return gamma.pdf(x, df / 2, loc, 2 * scale)


@distribution
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x."""
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@distribution
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@distribution
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`."""
    return gamma.sf(x, df / 2, loc, 2 * scale)


@distribution
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return gamma.logsf(x, df / 2, loc, 2 * scale)
