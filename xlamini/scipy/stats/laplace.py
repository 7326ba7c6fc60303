"""The Laplace distribution about `loc`, whose density falls off by e over `scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from typing import Any

from xlamini.numpy import abs, exp, log, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import distribution, of_standardized
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0, scale=0.5)
    Array(-0., dtype=float32, weak_type=True)
    """
    return -abs(x - loc) / scale - log(2 * scale)


@distribution
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, 1.0]))
    Array([0.5       , 0.18393973], dtype=float32)
    """
    return exp(logpdf(x, loc, scale))


@of_standardized
def cdf(z: Any) -> Any:
    """The probability of at most x.

    >>> cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    half = exp(-abs(z)) / 2
    return where(z < 0, half, 1 - half)
