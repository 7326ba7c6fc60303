"""The normal distribution with mean `loc` and standard deviation `scale`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import log
from xlamini.runtime import Array
from xlamini.scipy.special import log_ndtr, ndtr, ndtri
from xlamini.scipy.stats.declaration import density, distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-0.9189385, dtype=float32, weak_type=True)
    """
    z = (x - loc) / scale
    return -(z * z + math.log(2 * math.pi)) / 2 - log(scale)


pdf = density(logpdf)


@distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32)
    """
    return ndtr((x - loc) / scale)


@distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`, precise also where that is tiny."""
    return log_ndtr((x - loc) / scale)


@distribution
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`."""
    return ndtr((loc - x) / scale)


@distribution
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`, precise also where that is tiny."""
    return log_ndtr((loc - x) / scale)


@distribution
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is q; NaN unless q is from 0 to 1.

    >>> ppf(0.5, loc=3.0)
    Array(3., dtype=float32)
    """
    return ndtri(q) * scale + loc


@distribution
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `sf` is q; NaN unless q is from 0 to 1."""
    return loc - ndtri(q) * scale
