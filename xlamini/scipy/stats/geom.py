"""The geometric distribution: which draw is the first to succeed, each with probability `p`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import exp, inf, log, where
from xlamini.runtime import Array
from xlamini.scipy.special import xlog1py
from xlamini.scipy.stats.declaration import counting
from xlamini.typing import ArrayLike


@counting
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> logpmf(2, 0.5)
    Array(-1.3862944, dtype=float32, weak_type=True)
    """
    y = k - loc
    return where(y <= 0, -inf, xlog1py(y - 1, -p) + log(p))


@counting
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> pmf(jnp.array([1, 2, 3]), 0.5)
    Array([0.5  , 0.25 , 0.125], dtype=float32)
    """
    return exp(logpmf(k, p, loc))
