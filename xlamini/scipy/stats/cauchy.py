"""The Cauchy distribution about `loc`, of half width `scale` at half its height.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math
from typing import Any

from xlamini.numpy import abs, arctan2, exp, log, log1p, nan, sign, tan, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import distribution, inside
from xlamini.typing import ArrayLike

_FAR = 1e10
"""From here on the 1 of `1 + z * z` does not count, and the square might overflow."""


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0)
    Array(-1.1447299, dtype=float32, weak_type=True)
    """
    z = (x - loc) / scale
    far = abs(z) > _FAR
    logarithm = where(far, 2 * log(abs(inside(far, z, 1))), log1p(inside(~far, z, 0) ** 2))
    return -math.log(math.pi) - log(scale) - logarithm


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
    return _log_share(x, loc, scale, cdf, sf)


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
    return _log_share(x, loc, scale, sf, cdf)


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


def _log_share(x: Any, loc: Any, scale: Any, share: Any, rest: Any) -> Any:
    """The logarithm of a probability, also near 1, where that of the rest has more digits."""
    found, other = share(x, loc, scale), rest(x, loc, scale)
    most = other < 0.25
    return where(most, log1p(-inside(most, other, 0)), log(inside(~most, found, 1)))


def _place(q: Any) -> Any:
    """The q-th quantile of width 1: a tangent, near 0 and 1 the inverse of a small one."""
    centre = q - 0.5
    outer = abs(centre) > 0.25
    tangent = tan(math.pi * where(outer, where(q < 0.5, q, 1 - q), centre))
    return where(outer, sign(centre) / inside(outer, tangent, 1), tangent)
