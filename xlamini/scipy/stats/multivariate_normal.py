"""The normal distribution of vectors, with mean `mean` and covariance `cov`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

import math
from typing import Any

from xlamini.core import ShapeError
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.lax.linalg import cholesky, triangular_solve
from xlamini.numpy import broadcast_shapes, broadcast_to, diagonal, exp, eye, log
from xlamini.runtime import Array
from xlamini.scipy.stats.declaration import distribution
from xlamini.typing import ArrayLike


@api_boundary
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the density at vectors x along the last axis; of numbers, if `mean` is one and `cov` a variance.

    `mean` has shape (..., n), `cov` (..., n, n) or (), the variance of each element, and they broadcast
    with x. ShapeError where they do not fit; NotImplementedError for `allow_singular`.

    >>> logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
    Array(-1.837877, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError("multivariate_normal.logpdf: allow_singular must be None; add to the diagonal of cov")
    return _logpdf(x, mean, cov)


@api_boundary
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density at vectors x (..., n), for `mean` (..., n) and `cov` (..., n, n); ShapeError where they do not fit.

    >>> pdf(jnp.zeros((3, 2)), jnp.zeros(2), jnp.eye(2))
    Array([0.15915495, 0.15915495, 0.15915495], dtype=float32)
    """
    return exp(_logpdf(x, mean, cov))


@distribution
def _logpdf(x: Any, mean: Any, cov: Any) -> Any:
    if not mean.shape:
        return -((x - mean) ** 2 / cov + log(cov) + math.log(2 * math.pi)) / 2
    n = mean.shape[-1]
    if cov.shape == ():
        cov = cov * eye(n, dtype=cov.dtype)
    if cov.shape[-2:] != (n, n):
        raise ShapeError(f"multivariate_normal: mean {mean.shape} needs cov (..., {n}, {n}), got {cov.shape}")
    factor = cholesky(cov)
    away = x - mean
    outer = broadcast_shapes(away.shape[:-1], cov.shape[:-2])
    columns = broadcast_to(away, (*outer, n))[..., None]
    if cov.ndim == 2:  # one factor for all vectors
        solved = triangular_solve(factor, columns.reshape(-1, n).T, left_side=True, lower=True)
        squares = (solved**2).sum(0).reshape(outer)
    else:
        solved = triangular_solve(broadcast_to(factor, (*outer, n, n)), columns, left_side=True, lower=True)
        squares = (solved**2).sum((-2, -1))
    return -squares / 2 - n / 2 * math.log(2 * math.pi) - log(diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
