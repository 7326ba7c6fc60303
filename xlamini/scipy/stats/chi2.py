"""The chi-squared distribution of `df` degrees of freedom: a gamma distribution of half the shape, twice as wide.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
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
    """The density.

    >>> pdf(jnp.array([-1.0, 2.0]), 2.0)
    Array([0.        , 0.18393973], dtype=float32)
    """
    return gamma.pdf(x, df / 2, loc, 2 * scale)


@distribution
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(2.0, 2.0)
    Array(0.6321205, dtype=float32, weak_type=True)
    """
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@distribution
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> logcdf(2.0, 2.0)
    Array(-0.45867527, dtype=float32, weak_type=True)
    """
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@distribution
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(2.0, 2.0)
    Array(0.3678795, dtype=float32, weak_type=True)
    """
    return gamma.sf(x, df / 2, loc, 2 * scale)


@distribution
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> logsf(4.0, 2.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    return gamma.logsf(x, df / 2, loc, 2 * scale)
