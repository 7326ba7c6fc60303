"""The Gumbel distribution of smallest values: `gumbel_r` seen in a mirror.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from typing import Any

from xlamini.numpy import exp, expm1, inf, log, log1p, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import (
    density,
    distribution,
    log_density,
    log_of_rest,
    of_standardized,
    without_overflow,
)
from xlamini.typing import ArrayLike


@log_density
def logpdf(z: Any) -> Any:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    above = z == inf
    return where(above, -inf, z - exp(where(above, 0, z)))


@density
def pdf(z: Any) -> Any:
    """The density.

    >>> pdf(0.0)
    Array(0.36787945, dtype=float32, weak_type=True)
    """
    z = without_overflow(z)
    return z - exp(z)


@of_standardized
def cdf(z: Any) -> Any:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.63212055, dtype=float32, weak_type=True)
    """
    return -expm1(-exp(without_overflow(z)))


@of_standardized
def logcdf(z: Any) -> Any:
    """The logarithm of `cdf`.

    >>> logcdf(0.0)
    Array(-0.45867515, dtype=float32, weak_type=True)
    """
    return log_of_rest(z)


@of_standardized
def sf(z: Any) -> Any:
    """The probability of more than x: `1 - cdf`.

    >>> sf(0.0)
    Array(0.36787945, dtype=float32, weak_type=True)
    """
    return exp(-exp(without_overflow(z)))


@of_standardized
def logsf(z: Any) -> Any:
    """The logarithm of `sf`.

    >>> logsf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """
    return -exp(z)


@distribution
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is p; NaN unless p is from 0 to 1.

    >>> ppf(0.5)
    Array(-0.36651292, dtype=float32, weak_type=True)
    """
    return loc + scale * log(-log1p(-p))
