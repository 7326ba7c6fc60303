"""The Pareto distribution of exponent `b`, from `loc + scale` on.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.nn import log1mexp
from xlamini.numpy import exp, expm1, inf, log, log1p, nan, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import distribution, inside
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    y = (x - loc) / scale
    return where(y < 1, -inf, log(b) - (b + 1) * log(inside(~(y < 1), y)) - log(scale))


@distribution
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([0.5, 1.0]), 2.0)
    Array([0., 2.], dtype=float32)
    """
    return exp(logpdf(x, b, loc, scale))


@distribution
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(2.0, 1.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return -expm1(logsf(x, b, loc, scale))


@distribution
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> logcdf(2.0, 1.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    exceeds = -logsf(x, b, loc, scale)
    return where(exceeds <= 0, -inf, log1mexp(inside(~(exceeds <= 0), exceeds)))


@distribution
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([1.0, 2.0]), 2.0)
    Array([1.  , 0.25], dtype=float32)
    """
    return exp(logsf(x, b, loc, scale))


@distribution
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> logsf(2.0, 1.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    y = (x - loc) / scale
    return where(y < 1, 0, -b * log(inside(~(y < 1), y)))


@distribution
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is q; NaN unless q is from 0 to 1.

    >>> ppf(0.75, 2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return where((q < 0) | (q > 1), nan, loc + scale * exp(-log1p(-q) / b))
