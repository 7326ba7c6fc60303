"""The multinomial distribution: how often each of several kinds is drawn in `n` draws, with probabilities `p`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import exp, inf, where
from xlamini.primitives import convert
from xlamini.runtime import Array
from xlamini.scipy.special import gammaln, xlogy
from xlamini.scipy.stats.declaration import distribution
from xlamini.typing import ArrayLike


@distribution
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of the counts x, along the last axis; minus infinity unless they sum to n.

    >>> logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))
    Array(-0.6931471, dtype=float32)
    """
    chance = gammaln(n + 1) + (xlogy(convert(x, p.dtype), p) - gammaln(x + 1)).sum(-1)
    return where(x.sum(-1) == n, chance, -inf)


@distribution
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of the counts x, along the last axis; 0 unless they sum to n.

    >>> pmf(jnp.array([[2, 0], [1, 1]]), 2, jnp.array([0.5, 0.5]))
    Array([0.25, 0.5 ], dtype=float32)
    """
    return exp(logpmf(x, n, p))
