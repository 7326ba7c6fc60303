"""The Gumbel distribution of largest values: a double exponential with a long tail on the right.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import exp, expm1, inf, log, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import distribution, log_of_rest, without_overflow
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    z = (x - loc) / scale
    below = z == -inf
    return where(below, z, -z - exp(-where(below, 0, z)) - log(scale))


@distribution
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(0.0)
    Array(0.36787945, dtype=float32, weak_type=True)
    """
    z = without_overflow((loc - x) / scale)
    return exp(z - exp(z) - log(scale))


@distribution
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.36787945, dtype=float32, weak_type=True)
    """
    return exp(-exp(without_overflow((loc - x) / scale)))


@distribution
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> logcdf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    return -exp((loc - x) / scale)


@distribution
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(0.0)
    Array(0.63212055, dtype=float32, weak_type=True)
    """
    return -expm1(-exp(without_overflow((loc - x) / scale)))


@distribution
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> logsf(0.0)
    Array(-0.45867515, dtype=float32, weak_type=True)
    """
    return log_of_rest((loc - x) / scale)


@distribution
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is p; NaN unless p is from 0 to 1.

    >>> ppf(0.5)
    Array(0.36651292, dtype=float32, weak_type=True)
    """
    return loc - scale * log(-log(p))
