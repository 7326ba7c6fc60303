"""Bessel functions of the first kind: modified ones of order 0 and 1, plain ones of whole order."""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.numpy.arguments import as_count
from xlamini.numpy.construction import stack
from xlamini.numpy.ufuncs.declaration import for_kinds, ufunc
from xlamini.primitives import FLOAT, abs, convert, exp, promoted_inexact
from xlamini.primitives.elementwise.special.bessel import bessel_i0e, bessel_i1e
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@ufunc(bessel_i0e, promoted_inexact)
def i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0, times `exp(-abs(x))`, of each element.

    >>> i0e(1.0)
    Array(0.4657596, dtype=float32, weak_type=True)
    """
    ...


@ufunc(bessel_i1e, promoted_inexact)
def i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 1, times `exp(-abs(x))`, of each element.

    >>> i1e(1.0)
    Array(0.20791042, dtype=float32, weak_type=True)
    """
    ...


@ufunc(lambda x: exp(abs(x)) * bessel_i0e(x), promoted_inexact)
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0 of each element.

    >>> i0(1.0)
    Array(1.2660658, dtype=float32, weak_type=True)
    """
    ...


@ufunc(lambda x: exp(abs(x)) * bessel_i1e(x), promoted_inexact)
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 1 of each element.

    >>> i1(1.0)
    Array(0.5651591, dtype=float32, weak_type=True)
    """
    ...


@composite(static=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of orders 0 to v at real z: an array of shape `(v + 1, *z.shape)`.

    The backward recurrence of Miller (DLMF 3.6.5), as ratios, starts at order `n_iter`, which must be well beyond both
    v and z. ValueError for a negative v.

    >>> bessel_jn(1.0, v=1)
    Array([0.7651977, 0.4400506], dtype=float32)
    """
    last = as_count("bessel_jn", "v", v)
    (x,) = for_kinds(FLOAT, promoted_inexact)("bessel_jn", z)
    ratios: list[Any] = []
    ratio, even = 0 * x, 0 * x
    for k in range(max(as_count("bessel_jn", "n_iter", n_iter), last + 1), 0, -1):
        ratio = x / (2 * k - x * ratio)
        even = ratio * (even + int(k % 2 == 0))
        ratios.append(ratio)
    found = [1 / (1 + 2 * even)]
    for ratio in ratios[: -last - 1 : -1]:
        found.append(found[-1] * ratio)
    return stack([convert(j, aval_of(x).dtype) for j in found])
