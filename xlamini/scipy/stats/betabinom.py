"""The beta-binomial distribution: how many of `n` draws succeed, with a probability from a beta distribution.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import exp, inf, log1p, where
from xlamini.runtime import Array
from xlamini.scipy.special import betaln
from xlamini.scipy.stats.declaration import counting, inside
from xlamini.typing import ArrayLike


@counting
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> logpmf(1, 1, 1.0, 1.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    y = k - loc
    outside = (y < 0) | (y > n)
    y = inside(~outside, y, 0)
    ways = -log1p(n) - betaln(n - y + 1, y + 1)
    return where(outside, -inf, ways + betaln(y + a, n - y + b) - betaln(a, b))


@counting
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> pmf(jnp.arange(3), 2, 1.0, 1.0)
    Array([0.3333333, 0.3333333, 0.3333333], dtype=float32)
    """
    return exp(logpmf(k, n, a, b, loc))
