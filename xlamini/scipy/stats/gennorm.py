"""The generalised normal distribution about 0: `exp(-abs(x) ** beta)` up to a factor.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import abs, exp, inf, log, where
from xlamini.runtime import Array
from xlamini.scipy.special import gammainc, gammaincc, gammaln
from xlamini.scipy.stats.declaration import distribution, finite, inside
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density.

    >>> logpdf(1.0, 1.0)
    Array(-1.6931472, dtype=float32, weak_type=True)
    """
    return log(beta) - math.log(2) - gammaln(1 / beta) - abs(x) ** beta


@distribution
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, 1.0]), 1.0)
    Array([0.5       , 0.18393973], dtype=float32)
    """
    return where(abs(x) == inf, 0, exp(logpdf(finite(x), beta)))


@distribution
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of at most x.

    >>> cdf(0.0, 3.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    within = ~((x == 0) | (abs(x) == inf))
    size = abs(inside(within, x))
    share = gammainc(1 / beta, size**beta)
    rest = gammaincc(1 / beta, size**beta)
    middle = 0.5 + beta / (2 * exp(gammaln(1 / beta))) * inside(x == 0, x, 0)  # whose slope is the density at 0
    return where(within, where(x < 0, rest, 1 + share) / 2, where(x == 0, middle, where(x < 0, 0, 1)))
