"""Riemann's and Hurwitz' zeta functions."""
from __future__ import annotations

import math
from typing import Any

from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import eq, gt, promoted_inexact, where
from xlamini.primitives.elementwise.special.gamma import zeta as zeta_p
from xlamini.runtime import Array
from xlamini.typing import ArrayLike


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz' zeta function, the sum of `(q + k) ** -x` over k = 0, 1, 2, …, for x > 1; q = 1, Riemann's, if None.

    >>> zeta(2.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    return _zeta(x, 1 if q is None else q)


def _with_limit(x: Any, q: Any) -> Any:
    """Of an infinite x only the first term is left, which is `q ** -x`."""
    first = where(eq(q, 1), 1.0, where(gt(q, 1), 0.0, where(gt(q, 0), math.inf, math.nan)))
    return where(eq(x, math.inf), first, zeta_p(x, q))


@ufunc(_with_limit, promoted_inexact)
def _zeta(x: ArrayLike, q: ArrayLike) -> Array: ...
