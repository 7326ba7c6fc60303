"""The generalised normal distribution about 0: `exp(-abs(x) ** beta)` up to a factor."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import abs, log, sign
from xlamini.runtime import Array
from xlamini.scipy.special import gammainc, gammaln
from xlamini.scipy.stats.declaration import density, distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density.

    >>> logpdf(1.0, 1.0)
    Array(-1.6931472, dtype=float32, weak_type=True)
    """
    return log(beta) - math.log(2) - gammaln(1 / beta) - abs(x) ** beta


pdf = density(logpdf)


@distribution
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of at most x.

    >>> cdf(0.0, 3.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return (1 + sign(x) * gammainc(1 / beta, abs(x) ** beta)) / 2
