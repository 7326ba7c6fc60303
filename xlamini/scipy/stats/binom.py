"""The binomial distribution: how many of `n` draws succeed, each with probability `p`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import exp, inf, where
from xlamini.runtime import Array
from xlamini.scipy.special import gammaln, xlog1py, xlogy
from xlamini.scipy.stats.declaration import distribution, inside
from xlamini.typing import ArrayLike


@distribution
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> logpmf(2, 2, 0.5)
    Array(-1.3862944, dtype=float32, weak_type=True)
    """
    y = k - loc
    outside = (y < 0) | (y > n)
    y = inside(~outside, y, 0)
    ways = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
    return where(outside, -inf, ways + xlogy(y, p) + xlog1py(n - y, -p))


@distribution
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> pmf(jnp.arange(3), 2, 0.5)
    Array([0.25, 0.5 , 0.25], dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, n, p, loc))
