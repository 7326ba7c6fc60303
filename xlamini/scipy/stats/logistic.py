"""The logistic distribution about `loc`, stretched by `scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import abs, exp, log, log1p
from xlamini.runtime import Array
from xlamini.scipy.special import expit, logit
from xlamini.scipy.stats.declaration import distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-1.3862944, dtype=float32, weak_type=True)
    """
    z = abs(x - loc) / scale
    return -z - 2 * log1p(exp(-z)) - log(scale)


@distribution
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(0.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


@distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return expit((x - loc) / scale)


@distribution
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.5       , 0.26894143], dtype=float32)
    """
    return expit((loc - x) / scale)


@distribution
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Of which number `cdf` is x; NaN unless x is from 0 to 1.

    >>> ppf(0.5, loc=2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return logit(x) * scale + loc


@distribution
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Of which number `sf` is x; NaN unless x is from 0 to 1.

    >>> isf(0.5, loc=2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return loc - logit(x) * scale
