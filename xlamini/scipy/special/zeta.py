"""Riemann's and Hurwitz' zeta functions."""
from __future__ import annotations

from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import promoted_inexact
from xlamini.primitives.special.gamma import zeta as zeta_p
from xlamini.runtime import Array
from xlamini.typing import ArrayLike


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz' zeta function, the sum of `(q + k) ** -x` over k = 0, 1, 2, …, for x > 1; q = 1, Riemann's, if None.

    >>> zeta(2.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    return _zeta(x, 1 if q is None else q)


@ufunc(zeta_p, promoted_inexact)
def _zeta(x: ArrayLike, q: ArrayLike) -> Array: ...
