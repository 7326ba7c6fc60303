"""The uniform distribution from `loc` to `loc + scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from typing import Any

from xlamini.numpy import exp, inf, log, nan, where
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import distribution, of_standardized
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(jnp.array([0.5, 2.0]))
    Array([ -0., -inf], dtype=float32)
    """
    outside = (x < loc) | (x > loc + scale)
    return where(outside, -inf, where(x == x, -log(scale), nan))


@distribution
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([1.0, 5.0]), 0.0, 4.0)
    Array([0.25, 0.  ], dtype=float32)
    """
    return exp(logpdf(x, loc, scale))


@of_standardized
def cdf(z: Any) -> Any:
    """The probability of at most x.

    >>> cdf(1.0, 0.0, 4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return where(z < 0, 0, where(z > 1, 1, z))


@distribution
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The x of which `cdf` is q; NaN unless q is from 0 to 1.

    >>> ppf(0.25, 0.0, 4.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return where((q < 0) | (q > 1), nan, loc + q * scale)
