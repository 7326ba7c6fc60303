"""The logistic distribution about `loc`, stretched by `scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from typing import Any

from xlamini.numpy import abs, exp, log1p
from xlamini.runtime import Array
from xlamini.scipy.special import expit, logit
from xlamini.scipy.stats.declaration import density, distribution, log_density, of_standardized
from xlamini.typing import ArrayLike


@log_density
def logpdf(z: Any) -> Any:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-1.3862944, dtype=float32, weak_type=True)
    """
    return _log_density(z)


@density
def pdf(z: Any) -> Any:
    """The density.

    >>> pdf(0.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return _log_density(z)


@of_standardized
def cdf(z: Any) -> Any:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return expit(z)


@of_standardized
def sf(z: Any) -> Any:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.5       , 0.26894143], dtype=float32)
    """
    return expit(-z)


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


def _log_density(z: Any) -> Any:
    z = abs(z)
    return -z - 2 * log1p(exp(-z))
