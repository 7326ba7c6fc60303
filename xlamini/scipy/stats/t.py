"""Student's t distribution of `df` degrees of freedom about `loc`, stretched by `scale`.

Arguments broadcast, with ShapeError where they cannot; the result has their shape and their promoted inexact dtype.
"""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import exp, log, log1p
from xlamini.runtime import Array
from xlamini.scipy.special import gammaln
from xlamini.scipy.stats.declaration import distribution
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> logpdf(0.0, 1.0)
    Array(-1.1447299, dtype=float32, weak_type=True)
    """
    z = (x - loc) / scale
    height = gammaln((df + 1) / 2) - gammaln(df / 2) - log(df * math.pi) / 2 - log(scale)
    return height - (df + 1) / 2 * log1p(z * z / df)


@distribution
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> pdf(jnp.array([0.0, 1.0]), 1.0)
    Array([0.3183099 , 0.15915495], dtype=float32)
    """
    return exp(logpdf(x, df, loc, scale))
