"""The negative binomial distribution: how many draws fail before `n` have succeeded, each with probability `p`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import exp, inf, where
from xlamini.runtime import Array
from xlamini.scipy.special import gammaln, xlog1py, xlogy
from xlamini.scipy.stats.declaration import counting, inside
from xlamini.typing import ArrayLike


@counting
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> logpmf(0, 1, 0.5)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    y = k - loc
    outside = (y < 0) | (y == inf)
    y = inside(~outside, y, 0)
    ways = gammaln(y + n) - gammaln(n) - gammaln(y + 1)
    return where(outside, -inf, ways + xlogy(n, p) + xlog1py(y, -p))


@counting
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> pmf(jnp.arange(3), 1, 0.5)
    Array([0.5  , 0.25 , 0.125], dtype=float32)
    """
    return exp(logpmf(k, n, p, loc))
