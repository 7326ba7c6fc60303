"""The Cauchy distribution about `loc`, of half width `scale` at half its height.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math
from typing import Any

from xlamini.numpy import abs, arctan2, log, log1p, nan, sign, tan, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import density, distribution, inside, log_density, of_standardized
from xlamini.typing import ArrayLike

_FAR = 1e10
"""From here on the 1 of `1 + z * z` does not count, and the square might overflow."""


@log_density
def logpdf(z: Any) -> Any:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-1.1447299, dtype=float32, weak_type=True)
    """
    return _log_density(z)


@density
def pdf(z: Any) -> Any:
    """The density.

    >>> pdf(jnp.array([0.0, 1.0]))
    Array([0.3183099 , 0.15915495], dtype=float32)
    """
    return _log_density(z)


@of_standardized
def cdf(z: Any) -> Any:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return _share(z)


@of_standardized
def logcdf(z: Any) -> Any:
    """The logarithm of `cdf`.

    >>> logcdf(0.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    return _log_share(z)


@of_standardized
def sf(z: Any) -> Any:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([0.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return _share(-z)


@of_standardized
def logsf(z: Any) -> Any:
    """The logarithm of `sf`.

    >>> logsf(0.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    return _log_share(-z)


@distribution
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is q; NaN unless q is from 0 to 1.

    >>> ppf(0.5, loc=2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return where((q < 0) | (q > 1), nan, loc + scale * _place(q))


@distribution
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `sf` is q; NaN unless q is from 0 to 1.

    >>> isf(0.5, loc=2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return where((q < 0) | (q > 1), nan, loc - scale * _place(q))


# --- helpers


def _log_density(z: Any) -> Any:
    far = abs(z) > _FAR
    return -math.log(math.pi) - where(far, 2 * log(abs(inside(far, z, 1))), log1p(inside(~far, z, 0) ** 2))


def _share(z: Any) -> Any:
    """The probability of at most z."""
    return arctan2(1, -z) / math.pi


def _log_share(z: Any) -> Any:
    """The logarithm of a probability, also near 1, where that of the rest has more digits."""
    found, other = _share(z), _share(-z)
    most = other < 0.25
    return where(most, log1p(-inside(most, other, 0)), log(inside(~most, found, 1)))


def _place(q: Any) -> Any:
    """The q-th quantile of width 1: a tangent, near 0 and 1 the inverse of a small one."""
    centre = q - 0.5
    outer = abs(centre) > 0.25
    tangent = tan(math.pi * where(outer, where(q < 0.5, q, 1 - q), centre))
    return where(outer, sign(centre) / inside(outer, tangent, 1), tangent)
