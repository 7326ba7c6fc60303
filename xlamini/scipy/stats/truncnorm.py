"""The normal distribution between `loc + scale * a` and `loc + scale * b` alone.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from typing import Any

from xlamini.nn import log1mexp
from xlamini.numpy import clip, exp, finfo, inf, log, maximum, minimum, nan, where
from xlamini.runtime import Array
from xlamini.scipy.special import log_ndtr
from xlamini.scipy.stats import norm
from xlamini.scipy.stats.declaration import distribution, finite, inside
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density; NaN unless a < b.

    >>> logpdf(jnp.array([0.0, 3.0]), -1.0, 1.0).round(3)
    Array([-0.537,   -inf], dtype=float32)
    """
    return _log_density((x - loc) / scale, a, b) - log(scale)


@distribution
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, 3.0]), -1.0, 1.0)
    Array([0.5843686, 0.       ], dtype=float32)
    """
    return exp(_log_density(finite((x - loc) / scale), a, b) - log(scale))


@distribution
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> logcdf(0.0, -1.0, 1.0)
    Array(-0.6931471, dtype=float32)
    """
    return _log_share((x - loc) / scale, a, b, True)


@distribution
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0, -1.0, 1.0)
    Array(0.5, dtype=float32)
    """
    return exp(logcdf(x, a, b, loc, scale))


@distribution
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> logsf(0.0, -1.0, 1.0)
    Array(-0.69314724, dtype=float32)
    """
    return _log_share((x - loc) / scale, a, b, False)


@distribution
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([-1.0, 1.0]), -1.0, 1.0)
    Array([1., 0.], dtype=float32)
    """
    return exp(logsf(x, a, b, loc, scale))


def _log_density(z: Any, a: Any, b: Any) -> Any:
    outside = (z < a) | (z > b)
    return where(a < b, where(outside, -inf, norm.logpdf(inside(~outside, z)) - _log_mass(a, b)), nan)


def _log_share(z: ArrayLike, a: ArrayLike, b: ArrayLike, below: bool) -> Array:
    """The logarithm of the share of the probability below z, or above it; the larger one from the smaller."""
    there = (z > a) & (z < b)
    place = where(there, z, (clip(a, -1, 1) + clip(b, -1, 1)) / 2)
    whole = _log_mass(a, b)
    low, high = _log_mass(a, place) - whole, _log_mass(place, b) - whole
    share, rest = (low, high) if below else (high, low)
    share = where(share > -0.1, log1mexp(-minimum(rest, -1e-30)), share)
    at_the_ends = where(z <= a, -inf, 0) if below else where(z <= a, 0, -inf)
    return where((a < b) & (z == z), where(there, share, at_the_ends), nan)


def _log_mass(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the normal probability between a and b, taken on the side where both tails are thin."""
    turned = a > 0
    low, high = where(turned, -b, a), where(turned, -a, b)
    upper, lower = log_ndtr(high), log_ndtr(low)
    gap = upper - lower
    apart = gap > 0
    width = high - low
    narrow = width * maximum(-low, 1) < (24 * finfo(width.dtype).eps) ** (1 / 3)
    middle = inside(narrow, (low + high) / 2, 0)  # where masses would cancel, the density there times the width
    thin = norm.logpdf(middle) + log(inside(narrow & (width > 0), width, 1))
    wide = where(apart, upper + log1mexp(inside(apart, gap)), where(width == width, -inf, nan))
    return where(narrow, where(width > 0, thin, -inf), wide)
