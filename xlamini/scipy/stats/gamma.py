"""The gamma distribution of shape `a`, from `loc` on, stretched by `scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from typing import Any

from xlamini.numpy import exp, inf, log, where
from xlamini.primitives import stop_gradient
from xlamini.runtime import Array
from xlamini.scipy.special import gammainc, gammaincc, gammaln, xlogy
from xlamini.scipy.stats import declaration
from xlamini.scipy.stats.declaration import distribution, inside, nothing
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(2.0, 1.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    return _log_density((x - loc) / scale, a) - log(scale)


def _log_density(y: Any, a: Any) -> Any:
    there = (y >= 0) & (y < inf)
    density = xlogy(a - 1, inside(there, y)) - inside(there | (y != y), y) - gammaln(a)
    return where(there | (y != y), density, -inf)


@distribution
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, 1.0]), 1.0)
    Array([1.        , 0.36787945], dtype=float32)
    """
    y = (x - loc) / scale
    start = y == 0  # the logarithm has no finite slope there, but the density may have
    density = exp(_log_density(where(start, stop_gradient(y), y), a) - log(scale))
    return density + nothing(y, where(start, declaration.slope_at_0(a, -1, 1) / scale, 0))


@distribution
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(0.0, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    y = (x - loc) / scale
    within = ~((y <= 0) | (y == inf))
    return where(within, gammainc(a, inside(within, y)), where(y > 0, 1, 0))


@distribution
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> logcdf(1.0, 2.0)
    Array(-1.3308933, dtype=float32, weak_type=True)
    """
    share = cdf(x, a, loc, scale)
    return where(share == 0, -inf, log(inside(share != 0, share)))


@distribution
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([0.0, 1.0]), 1.0)
    Array([1.       , 0.3678795], dtype=float32)
    """
    y = (x - loc) / scale
    within = ~((y <= 0) | (y == inf))
    return where(within, gammaincc(a, inside(within, y)), where(y > 0, 0, 1))


@distribution
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> logsf(1.0, 2.0)
    Array(-0.30685288, dtype=float32, weak_type=True)
    """
    share = sf(x, a, loc, scale)
    return where(share == 0, -inf, log(inside(share != 0, share)))
