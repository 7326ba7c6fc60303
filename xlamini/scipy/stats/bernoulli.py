"""The Bernoulli distribution: 1 with probability `p`, else 0.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import exp, floor, inf, log, log1p, nan, where, zeros_like
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import counting
from xlamini.typing import ArrayLike


@counting
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> logpmf(jnp.array([1, 2]), 1.0)
    Array([  0., -inf], dtype=float32)
    """
    x = k - loc
    return where(x == 0, log1p(-p), where(x == 1, log(p), where(x == x, -inf, nan)))


@counting
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> pmf(jnp.array([0, 1, 2]), 0.25)
    Array([0.75, 0.25, 0.  ], dtype=float32)
    """
    return exp(logpmf(k, p, loc))


@counting
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of at most k; NaN unless p is from 0 to 1.

    >>> cdf(0.5, 0.25)
    Array(0.75, dtype=float32, weak_type=True)
    """
    x = floor(k)
    share = where(x < 0, 0, where(x < 1, 1 - p, where(x == x, 1, nan)))
    return where((p < 0) | (p > 1), nan, share)


@counting
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The smallest k of which `cdf` is at least q; NaN unless q and p are from 0 to 1.

    >>> ppf(jnp.array([0.5, 0.9]), 0.25)
    Array([0., 1.], dtype=float32)
    """
    allowed = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
    return where(allowed, where(q <= 1 - p, zeros_like(p), 1), nan)
