"""The negative binomial distribution: how many draws fail before `n` have succeeded, each with probability `p`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import inf, where
from xlamini.runtime import Array
from xlamini.scipy.special import gammaln, xlog1py, xlogy
from xlamini.scipy.stats.declaration import counting, inside, mass
from xlamini.typing import ArrayLike


@counting
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> logpmf(0, 1, 0.5)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    y = k - loc
    there = y >= 0
    y = inside(there, y, 0)
    ways = gammaln(y + n) - gammaln(n) - gammaln(y + 1)
    return where(there, ways + xlogy(n, p) + xlog1py(y, -p), -inf)


pmf = mass(logpmf)
