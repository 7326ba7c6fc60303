"""The exponential distribution of rate `1 / scale`, from `loc` on.

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
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(2.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    return where(x < loc, -inf, (loc - x) / scale - log(scale))


@distribution
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([-1.0, 0.0]))
    Array([0., 1.], dtype=float32)
    """
    return exp(logpdf(x, loc, scale))


@distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(jnp.array([-1.0, 0.0]))
    Array([ 0., -0.], dtype=float32)
    """
    return where(x < loc, 0, -expm1(inside(~(x < loc), (loc - x) / scale, 0)))


@distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> logcdf(1.0)
    Array(-0.45867515, dtype=float32, weak_type=True)
    """
    z = (x - loc) / scale
    return where(x <= loc, -inf, log1mexp(inside(~(z <= 0), z)))


@distribution
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([0.0, 1.0]))
    Array([1.        , 0.36787945], dtype=float32)
    """
    return exp(logsf(x, loc, scale))


@distribution
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> logsf(2.0, scale=4.0)
    Array(-0.5, dtype=float32, weak_type=True)
    """
    return where(x < loc, 0, (loc - x) / scale)


@distribution
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is q; NaN unless q is from 0 to 1.

    >>> ppf(0.5)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    return where((q < 0) | (q > 1), nan, loc - scale * log1p(-q))
