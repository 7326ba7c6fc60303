"""Student's t distribution of `df` degrees of freedom about `loc`, stretched by `scale`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math

from xlamini.numpy import log, log1p
from xlamini.runtime import Array
from xlamini.scipy.special import gammaln
from xlamini.scipy.stats.declaration import density, distribution
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


pdf = density(logpdf)
