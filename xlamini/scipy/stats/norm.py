"""The normal distribution with mean `loc` and standard deviation `scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math
from typing import Any

from xlamini.runtime import Array
from xlamini.scipy.special import log_ndtr, ndtr, ndtri
from xlamini.scipy.stats.declaration import density, distribution, finite, log_density, of_standardized
from xlamini.typing import ArrayLike


@log_density
def logpdf(z: Any) -> Any:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-0.9189385, dtype=float32, weak_type=True)
    """
    return _log_density(z)


@density
def pdf(z: Any) -> Any:
    """The density.

    >>> pdf(jnp.array([0.0, 1.0]))
    Array([0.3989423 , 0.24197073], dtype=float32)
    """
    return _log_density(finite(z))


@of_standardized
def cdf(z: Any) -> Any:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32)
    """
    return ndtr(z)


@of_standardized
def logcdf(z: Any) -> Any:
    """The logarithm of `cdf`, precise also where that is tiny.

    >>> logcdf(-20.0)
    Array(-203.91716, dtype=float32)
    """
    return log_ndtr(z)


@of_standardized
def sf(z: Any) -> Any:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.5       , 0.15865526], dtype=float32)
    """
    return ndtr(-z)


@of_standardized
def logsf(z: Any) -> Any:
    """The logarithm of `sf`, precise also where that is tiny.

    >>> logsf(20.0)
    Array(-203.91716, dtype=float32)
    """
    return log_ndtr(-z)


@distribution
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is q; NaN unless q is from 0 to 1.

    >>> ppf(0.5, loc=3.0)
    Array(3., dtype=float32)
    """
    return ndtri(q) * scale + loc


@distribution
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `sf` is q; NaN unless q is from 0 to 1.

    >>> isf(0.5, loc=3.0)
    Array(3., dtype=float32)
    """
    return loc - ndtri(q) * scale


# --- helpers


def _log_density(z: Any) -> Any:
    return -(z * z + math.log(2 * math.pi)) / 2
