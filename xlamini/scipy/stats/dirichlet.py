"""The Dirichlet distribution: positive numbers that sum to 1, with concentrations `alpha`."""
# Formulas are given arrays, whatever their callers give.
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
from __future__ import annotations

from typing import Any

from xlamini.core import ShapeError, finfo
from xlamini.numpy import abs, concatenate, exp, inf, where
from xlamini.runtime import Array
from xlamini.scipy.special import gammaln, xlogy
from xlamini.scipy.stats.declaration import distribution, inside
from xlamini.typing import ArrayLike


@distribution
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density at x, whose first axis is that of `alpha`; the last number may be left out.

    Minus infinity where the numbers are negative or do not sum to 1. ShapeError where x has another size.

    >>> logpdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 1.0]))
    Array(0., dtype=float32)
    """
    x = _complete(x, alpha)
    there = (x >= 0).all(0) & (abs(x.sum(0) - 1) < 10 * float(finfo(x.dtype).eps) * alpha.size)
    powers = xlogy(alpha.reshape(-1, *(1,) * (x.ndim - 1)) - 1, inside(x >= 0, x)).sum(0)
    return where(there, powers - gammaln(alpha).sum() + gammaln(alpha.sum()), -inf)


@distribution
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density at x, of the shapes that `logpdf` takes.

    >>> pdf(jnp.array([0.5, 0.5]), jnp.array([2.0, 2.0]))
    Array(1.5, dtype=float32)
    """
    return exp(logpdf(x, alpha))


def _complete(x: Any, alpha: Any) -> Any:
    if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ShapeError(
            f"dirichlet: alpha has one axis, and x along its first axis as many numbers, or one less; got alpha "
            f"{alpha.shape} and x {x.shape}"
        )
    return x if x.shape[0] == alpha.shape[0] else concatenate([x, 1 - x.sum(0, keepdims=True)])
