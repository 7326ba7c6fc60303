"""The logistic function and its inverse, and Box' and Cox' transformations."""
from __future__ import annotations

from typing import Any

from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import COMPLEX, FLOAT, eq, log, log1p, promoted_inexact, where
from xlamini.primitives.elementwise.exponential import expm1
from xlamini.primitives.elementwise.hyperbolic import logistic
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.typing import ArrayLike


@ufunc(logistic, promoted_inexact)
def expit(x: ArrayLike) -> Array:
    """The logistic function of each element: `1 / (1 + exp(-x))`.

    >>> expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    ...


@special(lambda x, out: 1 / (x * (1 - x)), accepts=FLOAT | COMPLEX, weak=True)
def logit(x: ArrayLike) -> Array:
    """The inverse of `expit`, `log(x / (1 - x))`, for elements from 0 to 1; NaN for others.

    >>> logit(0.5)
    Array(0., dtype=float32, weak_type=True)
    """
    return log(x / (1 - x))


@special(accepts=FLOAT | COMPLEX, weak=True)
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box' and Cox' transformation, `(x ** lmbda - 1) / lmbda`; its limit `log(x)` at lmbda = 0.

    >>> boxcox(2.0, 2.0)
    Array(1.5, dtype=float32, weak_type=True)
    """
    return _power_less_one(log(x), lmbda)


@special(accepts=FLOAT | COMPLEX, weak=True)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`boxcox(1 + x, lmbda)`, precise for small x.

    >>> boxcox1p(1.0, 0.0)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    return _power_less_one(log1p(x), lmbda)


def _power_less_one(logarithm: Any, power: Any) -> Any:
    limit = eq(power, 0)
    finite = where(eq(logarithm - logarithm, 0), logarithm, 0.0)
    small = logarithm + power * finite * finite / 2
    safe, exponent = where(limit, 1.0, power), where(limit, 0.0, logarithm)
    return where(limit, small, expm1(safe * exponent) / safe)
