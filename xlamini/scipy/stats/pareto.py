"""The Pareto distribution of exponent `b`, from `loc + scale` on."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.nn import log1mexp
from xlamini.numpy import exp, expm1, inf, log, log1p, nan, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import density, distribution, inside
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    y = (x - loc) / scale
    return where(y < 1, -inf, log(b) - (b + 1) * log(inside(y >= 1, y)) - log(scale))


pdf = density(logpdf)


@distribution
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(2.0, 1.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return -expm1(logsf(x, b, loc, scale))


@distribution
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    exceeds = -logsf(x, b, loc, scale)
    return where(exceeds <= 0, -inf, log1mexp(inside(exceeds > 0, exceeds)))


@distribution
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`."""
    return exp(logsf(x, b, loc, scale))


@distribution
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    y = (x - loc) / scale
    return where(y < 1, 0, -b * log(inside(y >= 1, y)))


@distribution
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is q; NaN unless q is from 0 to 1."""
    return where((q < 0) | (q > 1), nan, loc + scale * exp(-log1p(-q) / b))
