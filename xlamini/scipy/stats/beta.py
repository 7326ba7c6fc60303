"""The beta distribution of shapes `a` and `b`, from `loc` to `loc + scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from typing import Any

from xlamini.numpy import exp, inf, log, where
from xlamini.primitives import stop_gradient
from xlamini.runtime import Array
from xlamini.scipy.special import betainc, betaln, xlog1py, xlogy
from xlamini.scipy.stats import declaration
from xlamini.scipy.stats.declaration import distribution, inside, nothing
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.5, 1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _log_density((x - loc) / scale, a, b) - log(scale)


def _log_density(y: Any, a: Any, b: Any) -> Any:
    outside = (y < 0) | (y > 1)
    y = inside(~outside, y)
    return where(outside, -inf, xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b))


@distribution
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([0.5, 2.0]), 2.0, 2.0)
    Array([1.5, 0. ], dtype=float32)
    """
    y = (x - loc) / scale
    edge = (y == 0) | (y == 1)  # the logarithm has no finite slope there, but the density may have
    density = exp(_log_density(where(edge, stop_gradient(y), y), a, b) - log(scale))
    at_0 = declaration.slope_at_0(a, b * (1 - b), b * (b + 1))
    at_1 = declaration.slope_at_0(b, a * (1 - a), a * (a + 1))
    slope = where(y == 0, at_0, -at_1)
    return density + nothing(y, where(edge, slope / scale, 0))


@distribution
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most x.

    >>> cdf(1.0, 2.0, 3.0)
    Array(1., dtype=float32, weak_type=True)
    """
    y = (x - loc) / scale
    within = ~((y <= 0) | (y >= 1))
    return where(within, betainc(a, b, inside(within, y)), where(y > 0, 1, 0))


@distribution
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`.

    >>> logcdf(0.25, 1.0, 1.0)
    Array(-1.3862944, dtype=float32, weak_type=True)
    """
    share = cdf(x, a, b, loc, scale)
    return where(share == 0, -inf, log(inside(share != 0, share)))


@distribution
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than x: `1 - cdf`.

    >>> sf(jnp.array([0.0, 0.75]), 1.0, 1.0)
    Array([1.  , 0.25], dtype=float32)
    """
    y = (x - loc) / scale
    within = ~((y <= 0) | (y >= 1))
    return where(within, betainc(b, a, inside(within, 1 - y)), where(y > 0, 0, 1))


@distribution
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> logsf(0.75, 1.0, 1.0)
    Array(-1.3862944, dtype=float32, weak_type=True)
    """
    share = sf(x, a, b, loc, scale)
    return where(share == 0, -inf, log(inside(share != 0, share)))
