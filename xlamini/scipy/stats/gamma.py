"""The gamma distribution of shape `a`, from `loc` on, stretched by `scale`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import inf, log, maximum, where
from xlamini.runtime import Array
from xlamini.scipy.special import gammainc, gammaincc, gammaln, xlogy
from xlamini.scipy.stats.declaration import density, distribution, inside
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(2.0, 1.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    y = (x - loc) / scale
    there = y >= 0
    density = xlogy(a - 1, inside(there, y)) - y - gammaln(a) - log(scale)
    return where(there, density, -inf)


pdf = density(logpdf)


@distribution
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return gammainc(a, maximum((x - loc) / scale, 0))


@distribution
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return log(cdf(x, a, loc, scale))


@distribution
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`."""
    return gammaincc(a, maximum((x - loc) / scale, 0))


@distribution
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return log(sf(x, a, loc, scale))
