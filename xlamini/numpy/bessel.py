"""The modified Bessel function that NumPy has; scipy.special has more."""
from __future__ import annotations

from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import abs, exp, promoted_inexact
from xlamini.primitives.elementwise.special.bessel import bessel_i0e
from xlamini.runtime import Array
from xlamini.typing import ArrayLike


@ufunc(lambda x: exp(abs(x)) * bessel_i0e(x), promoted_inexact)
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0 of each element.

    >>> i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    ...
