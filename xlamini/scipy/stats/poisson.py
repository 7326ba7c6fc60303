"""The Poisson distribution of mean `mu`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import arange, exp, floor, inf, isnan, log, nan, where
from xlamini.runtime import Array
from xlamini.scipy.special import gammaincc, gammaln, xlogy
from xlamini.scipy.stats.declaration import counting, distribution, inside
from xlamini.typing import ArrayLike

# Means up to this one have their entropy summed over so many numbers, which leaves out less than 1e-16.
_SMALL_MEAN, _TERMS = 15.0, 64


@distribution
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k; minus infinity where k is not whole.

    >>> logpmf(0, 2.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    y = k - loc
    outside = (y < 0) | (y == inf) | (y > floor(y)) | (mu == inf)
    y = inside(~outside, y, 0)
    return where(outside, -inf, xlogy(y, mu) - gammaln(y + 1) - mu)


@distribution
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> pmf(jnp.arange(3), 1.0)
    Array([0.36787945, 0.36787945, 0.18393973], dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, mu, loc))


@counting
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of at most k.

    >>> cdf(-1, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    y = floor(k - loc)
    return where(y < 0, 0, gammaincc(inside(~(y < 0), y, 0) + 1, mu))


@distribution
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy in nats; NaN for a negative mean.

    Of a large mean by the series of Evans and Boersma, "The entropy of a Poisson distribution" (SIAM Review, 1988).

    >>> entropy(0.0)
    Array(0., dtype=float32)
    """
    mu = mu + 0 * loc
    small = where(mu > 0, where(mu < _SMALL_MEAN, mu, 1), 1)
    large = where(mu < _SMALL_MEAN, _SMALL_MEAN, mu)
    numbers = arange(_TERMS, dtype=small.dtype)
    column = small[..., None]
    chances = exp(numbers * log(column) - column - gammaln(numbers + 1))
    summed = small * (1 - log(small)) + (chances * gammaln(numbers + 1)).sum(-1)
    series = 1 / large * (1 / 12 + 1 / large * (1 / 24 + 1 / large * (19 / 360 + 1 / large * (9 / 80))))
    found = where(mu < _SMALL_MEAN, summed, (log(large) + math.log(2 * math.pi) + 1) / 2 - series)
    return where((mu < 0) | isnan(mu), nan, where(mu == 0, 0, found))
