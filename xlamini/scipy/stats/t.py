"""Student's t distribution of `df` degrees of freedom about `loc`, stretched by `scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from xlamini.numpy import abs, exp, log, log1p, sqrt, where
from xlamini.runtime import Array
from xlamini.scipy.special import betaln
from xlamini.scipy.stats.declaration import distribution, inside
from xlamini.typing import ArrayLike

_FAR = 1e10
"""From here on the 1 of `1 + ratio**2` does not count, and the square might overflow."""


@distribution
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0, 1.0)
    Array(-1.1447299, dtype=float32, weak_type=True)
    """
    z = (x - loc) / scale
    ratio = abs(z) / sqrt(df)
    far = ratio > _FAR
    logarithm = where(far, 2 * log(inside(far, ratio, 1)), log1p(inside(~far, z, 0) ** 2 / df))
    return -betaln(df / 2, 0.5) - log(df) / 2 - log(scale) - (df + 1) / 2 * logarithm


@distribution
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, 1.0]), 1.0)
    Array([0.3183099 , 0.15915495], dtype=float32)
    """
    return exp(logpdf(x, df, loc, scale))
