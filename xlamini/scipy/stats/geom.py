"""The geometric distribution: which draw is the first to succeed, each with probability `p`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import inf, log, where
from xlamini.runtime import Array
from xlamini.scipy.special import xlog1py
from xlamini.scipy.stats.declaration import counting, mass
from xlamini.typing import ArrayLike


@counting
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> logpmf(2, 0.5)
    Array(-1.3862944, dtype=float32, weak_type=True)
    """
    y = k - loc
    return where(y <= 0, -inf, xlog1py(y - 1, -p) + log(p))


pmf = mass(logpmf)
