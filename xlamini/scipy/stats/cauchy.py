"""The Cauchy distribution about `loc`, of half width `scale` at half its height.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import arctan2, exp, log, log1p, nan, tan, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-1.1447299, dtype=float32, weak_type=True)
    """
    z = (x - loc) / scale
    return -math.log(math.pi) - log(scale) - log1p(z * z)


@distribution
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, 1.0]))
    Array([0.3183099 , 0.15915495], dtype=float32)
    """
    return exp(logpdf(x, loc, scale))


@distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return arctan2(1, (loc - x) / scale) / math.pi


@distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> logcdf(0.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    return log(cdf(x, loc, scale))


@distribution
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return arctan2(1, (x - loc) / scale) / math.pi


@distribution
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> logsf(0.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    return log(sf(x, loc, scale))


@distribution
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is q; NaN unless q is from 0 to 1.

    >>> ppf(0.5, loc=2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return where((q < 0) | (q > 1), nan, loc + scale * tan(math.pi * (q - 0.5)))


@distribution
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `sf` is q; NaN unless q is from 0 to 1.

    >>> isf(0.5, loc=2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return where((q < 0) | (q > 1), nan, loc + scale * tan(math.pi * (0.5 - q)))
