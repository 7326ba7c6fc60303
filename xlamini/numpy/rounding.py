"""Rounding under NumPy's names, and floats taken apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core.tracer import aval_of
from xlamini.numpy.arguments import as_operand, refuse_out
from xlamini.numpy.comparison import signbit
from xlamini.numpy.ufunc import as_they_are, for_kinds, ufunc
from xlamini.primitives import complex, rounding
from xlamini.primitives.arithmetic import abs, neg
from xlamini.primitives.convert import convert
from xlamini.primitives.elementwise import COMPLEX, FLOAT, kind_of
from xlamini.primitives.operators import less
from xlamini.primitives.promotion import promoted_inexact
from xlamini.primitives.select import where
from xlamini.runtime.array import Array
from xlamini.transforms.composite import composite
from xlamini.typing import ArrayLike


def _of_floats(round_float: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What leaves integers and bools as they are; TypeError for complex numbers, which have no order."""
    return lambda x: x if kind_of(aval_of(x).dtype) not in FLOAT | COMPLEX else round_float(x)


def _nearest_even(x: Any) -> Any:
    if kind_of(aval_of(x).dtype) in COMPLEX:
        return complex.complex(_nearest_even(complex.real(x)), _nearest_even(complex.imag(x)))
    return rounding.round(x, rounding.RoundingMethod.TO_NEAREST_EVEN)


def _towards_zero(x: Any) -> Any:
    return where(less(x, 0), rounding.ceil(x), rounding.floor(x))


@ufunc(_of_floats(rounding.floor), as_they_are)
def floor(x: ArrayLike, /) -> Array:
    """The largest whole number that is not above each element, in its dtype; TypeError for complex numbers."""
    ...


@ufunc(_of_floats(rounding.ceil), as_they_are)
def ceil(x: ArrayLike, /) -> Array:
    """The smallest whole number that is not below each element, in its dtype; TypeError for complex numbers."""
    ...


@ufunc(_of_floats(_towards_zero), as_they_are)
def trunc(x: ArrayLike) -> Array:
    """Each element without what is behind the point, in its dtype; TypeError for complex numbers."""
    ...


@ufunc(_nearest_even, promoted_inexact)
def rint(x: ArrayLike, /) -> Array:
    """The nearest whole number to each element, as a float; halves go to the even one."""
    ...


@composite(static=("decimals",))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Each element rounded to so many places behind the point; halves go to the even one.

    Integers stay as they are; for them `decimals` may not be negative (NotImplementedError).

    >>> round(2.567, 2)
    Array(2.57, dtype=float32, weak_type=True)
    """
    refuse_out("round", out)
    x = as_operand("round", a)
    if kind_of(x.dtype) in FLOAT | COMPLEX:
        return _at_place(x, decimals) if decimals else _nearest_even(x)
    if decimals < 0:
        raise NotImplementedError(f"round: decimals={decimals} for integers; convert them with .astype(float)")
    return x


around = round


def _at_place(x: Any, decimals: int) -> Any:
    dtype = aval_of(x).dtype
    if dtype == np.float16:  # 10 ** decimals soon leaves its range
        return convert(_at_place(convert(x, np.dtype("float32")), decimals), dtype)
    factor = 10.0**decimals
    return _nearest_even(x * factor) / factor


@composite()
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """What is behind the point of each element, and what is before it; both have its sign."""
    refuse_out("modf", out)
    (array,) = for_kinds(FLOAT, promoted_inexact)("modf", x)
    whole = _towards_zero(array)
    return array - whole, whole


def _copysign(x: Any, y: Any) -> Any:
    return where(signbit(y), neg(abs(x)), abs(x))


@ufunc(_copysign, for_kinds(FLOAT, promoted_inexact))
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The absolute value of each x1 with the sign of x2."""
    ...


@ufunc(rounding.nextafter, for_kinds(FLOAT, promoted_inexact))
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The float after each x in the direction of y."""
    ...


@composite()
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 * 2 ** x2` of each pair of elements; x2 must be of integers (TypeError)."""
    if not np.issubdtype(aval_of(x2).dtype, np.integer):
        raise TypeError(f"ldexp: x2 must be of integers, got {aval_of(x2).dtype}; round it, then .astype(int)")
    x, power = promoted_inexact("ldexp", x1, x2)
    # Two halves, so that 2 ** x2 may leave the range where the product does not.
    half = rounding.floor(power * 0.5)
    return x * 2.0**half * 2.0 ** (power - half)
