"""Rounding under NumPy's names, and the parts of floats: fraction, exponent, mantissa."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import aval_of, finfo, iinfo, issubdtype, result_type
from xlamini.numpy.arguments import as_index, as_operand, refuse_out
from xlamini.numpy.comparison import signbit
from xlamini.numpy.ufuncs.declaration import as_default_floats, for_kinds, ufunc, unpromoted
from xlamini.primitives import (
    COMPLEX,
    FLOAT,
    abs,
    bitcast_convert_type,
    convert,
    equal,
    in_dtype,
    is_complex,
    kind_of,
    promoted_inexact,
    stop_gradient,
    where,
    zeros,
)
from xlamini.primitives.base.operators import bitwise_and, bitwise_not, bitwise_or, greater, less, not_equal
from xlamini.primitives.elementwise import complex, rounding
from xlamini.primitives.elementwise.arithmetic import neg
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


def _of_floats(round_float: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Decorator: integers and bools pass unchanged; TypeError for complex numbers, which have no order."""
    return lambda x: x if kind_of(aval_of(x).dtype) not in FLOAT | COMPLEX else round_float(x)


def _nearest_even(x: Any) -> Any:
    if is_complex(x):
        return complex.complex(_nearest_even(complex.real(x)), _nearest_even(complex.imag(x)))
    return rounding.round(x, rounding.RoundingMethod.TO_NEAREST_EVEN)


def _towards_zero(x: Any) -> Any:
    return where(less(x, 0), rounding.ceil(x), rounding.floor(x))


@ufunc(_of_floats(rounding.floor), unpromoted)
def floor(x: ArrayLike, /) -> Array:
    """The largest whole number that is not above each element, in its dtype; TypeError for complex numbers.

    >>> jnp.floor(jnp.array([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float32)
    """
    ...


@ufunc(_of_floats(rounding.ceil), unpromoted)
def ceil(x: ArrayLike, /) -> Array:
    """The smallest whole number that is not below each element, in its dtype; TypeError for complex numbers.

    >>> jnp.ceil(jnp.array([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float32)
    """
    ...


@ufunc(_of_floats(_towards_zero), unpromoted)
def trunc(x: ArrayLike) -> Array:
    """Round each element towards 0, in its dtype; TypeError for complex numbers.

    >>> jnp.trunc(jnp.array([-1.5, 1.5]))
    Array([-1.,  1.], dtype=float32)
    """
    ...


@ufunc(_nearest_even, as_default_floats)
def rint(x: ArrayLike, /) -> Array:
    """The nearest whole number to each element, as a float; halves go to the even one.

    >>> jnp.rint(jnp.array([0.5, 1.5]))
    Array([0., 2.], dtype=float32)
    """
    ...


@composite(static=("decimals",))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round each element to so many decimals; halves go to the even one.

    With negative `decimals`, to a multiple of a power of ten, integers too. A number that has no more digits than that
    is unchanged, whatever the size of `10 ** decimals`.

    >>> round(2.567, 2)
    Array(2.57, dtype=float32, weak_type=True)
    >>> round(jnp.array([15, 25, -14]), -1)
    Array([ 20,  20, -10], dtype=int32)
    """
    refuse_out("round", out)
    x, decimals = as_operand("round", a), as_index("round", "decimals", decimals)
    if kind_of(x.dtype) not in FLOAT | COMPLEX:
        return x if decimals >= 0 else _to_multiple(x, 10**-decimals)
    return _at_place(x, decimals) if decimals else _nearest_even(x)


around = round


def _to_multiple(x: Any, unit: int) -> Any:
    """Integers at the nearest multiples of a unit; of two, at the even one."""
    if x.dtype == np.bool_ or unit > iinfo(x.dtype).max:
        return zeros(aval_of(x))
    quotient, rest = divmod(x, x.dtype.type(unit))
    odd = not_equal(quotient & 1, 0)
    up = bitwise_or(greater(rest, unit // 2), bitwise_and(equal(rest, unit // 2), odd))
    return where(up, quotient + 1, quotient) * in_dtype(unit, x.dtype)


def _at_place(x: Any, decimals: int) -> Any:
    if is_complex(x):
        return complex.complex(_at_place(complex.real(x), decimals), _at_place(complex.imag(x), decimals))
    dtype = aval_of(x).dtype
    if dtype.itemsize < 4:  # 10 ** decimals soon leaves its range or its digits
        return convert(_at_place(convert(x, np.dtype("float32")), decimals), dtype)
    rounded = _to_decimals(x, decimals) if decimals > 0 else _to_tens(x, 10 ** min(-decimals, 400))
    return where(less(abs(x), np.inf), rounded, stop_gradient(x))


def _to_tens(x: Any, unit: int) -> Any:
    """By a division, which is exact where the result is; 0 is nearest to all numbers if the unit is out of range."""
    return _nearest_even(_divided(x, float(unit))) * float(unit) if unit <= float(finfo(x.dtype).max) else x * 0


def _to_decimals(x: Any, decimals: int) -> Any:
    """The power of ten is in two parts, as one alone could be out of range; large numbers have no such decimals."""
    limits = finfo(x.dtype)
    largest = int(math.log10(float(limits.max)))
    first, second = (10.0 ** min(max(d, 0), largest) for d in (decimals, decimals - largest))
    scaled = x * first * second
    few = less(abs(scaled), 2.0 ** (limits.nmant + 1))
    whole = _nearest_even(where(few, scaled, 0))
    return where(few, _divided(_divided(whole, second), first), stop_gradient(x))


def _divided(x: Any, unit: float) -> Any:
    """The rounded quotient: XLA would multiply by the inverse of a constant, rounded twice, or to 0."""
    return x if unit == 1 else x / where(equal(x, x), unit, x)


@composite()
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integral part of each element; both have its sign.

    >>> jnp.modf(2.5)
    (Array(0.5, dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    refuse_out("modf", out)
    (array,) = for_kinds(FLOAT, promoted_inexact)("modf", x)
    whole = _towards_zero(array)
    infinite = equal(abs(array), math.inf)
    return where(infinite, 1 / array, array - where(infinite, 0, whole)), whole


def _copysign(x: Any, y: Any) -> Any:
    return where(signbit(y), neg(abs(x)), abs(x))


@ufunc(_copysign, for_kinds(FLOAT, promoted_inexact))
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The absolute value of each x1 with the sign of x2.

    >>> jnp.copysign(3.0, -1.0)
    Array(-3., dtype=float32, weak_type=True)
    """
    ...


@ufunc(rounding.nextafter, for_kinds(FLOAT, promoted_inexact))
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The float after each x in the direction of y.

    >>> jnp.nextafter(1.0, 2.0) > 1
    Array(True, dtype=bool)
    """
    ...


@composite()
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 * 2 ** x2` of each pair of elements; x2 must be of integers (TypeError).

    >>> jnp.ldexp(3.0, 2)
    Array(12., dtype=float32)
    """
    if not np.issubdtype(aval_of(x2).dtype, np.integer) and aval_of(x2).dtype != np.bool_:
        raise TypeError(f"ldexp: x2 must be of integers, got {aval_of(x2).dtype}; round it, then .astype(int)")
    (x,) = promoted_inexact("ldexp", x1)
    power = in_dtype(x2, aval_of(x).dtype)
    # Two halves, so that 2 ** x2 may leave the range where the product does not.
    half = rounding.floor(power * 0.5)
    return x * 2.0**half * 2.0 ** (power - half)


@ufunc(_towards_zero, promoted_inexact)
def _fix(x: ArrayLike, /) -> Array:
    ...


def fix(x: ArrayLike, out: None = None) -> Array:
    """Round each element towards 0, as a float: `trunc` under an older name.

    >>> fix(-2.7)
    Array(-2., dtype=float32, weak_type=True)
    """
    refuse_out("fix", out)
    return _fix(x)


@composite()
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Each element as a fraction, from 0.5 up to but not including 1 in size, and a power of two to multiply it by.

    Zeros, infinities and NaNs are their own fractions, with power 0. TypeError for complex numbers.

    >>> frexp(jnp.array([3.0, -0.25]))
    (Array([ 0.75, -0.5 ], dtype=float32), Array([ 2, -1], dtype=int32))
    """
    (array,) = for_kinds(FLOAT, promoted_inexact)("frexp", x)
    array = convert(array, aval_of(array).dtype)
    wide = convert(array, result_type(array.dtype, np.float32))
    exponent = _exponent(wide)
    fraction = times_power_of_two(wide, -exponent)
    odd = _none_of(array)
    return where(odd, array, convert(fraction, array.dtype)), where(odd, in_dtype(0, exponent.dtype), exponent)


@composite()
def spacing(x: ArrayLike, /) -> Array:
    """The distance from each element to the next float away from 0, with its sign. ValueError for complex numbers.

    >>> spacing(jnp.float32(1.0))
    Array(1.1920929e-07, dtype=float32)
    """
    if issubdtype(aval_of(as_operand("spacing", x)).dtype, np.complexfloating):
        raise ValueError("spacing: complex numbers have no next one; take their parts")
    (array,) = promoted_inexact("spacing", x)
    array = convert(array, aval_of(array).dtype)
    ends = finfo(array.dtype).smallest_subnormal, np.inf
    tiny, infinite = (_copysign(in_dtype(v, array.dtype), array) for v in ends)
    distance = rounding.nextafter(array, infinite) - array
    return where(equal(distance, 0), tiny, distance)


# --- floats as bits


def _layout(dtype: Any) -> tuple[Any, int, int]:
    """The format of a float: the integer dtype of its width, the bits of its fraction, and the bias of its exponent."""
    limits = finfo(dtype)
    return np.dtype(f"int{dtype.itemsize * 8}"), limits.nmant, limits.maxexp - 1


def _exponent(x: Any) -> Any:
    """The power of two above each number, as int32, from its bits."""
    integer, fraction_bits, bias = _layout(x.dtype)
    bits = bitcast_convert_type(stop_gradient(x), integer)
    exponent = bitwise_and(bits >> fraction_bits, 2 * bias + 1)
    fraction = bitwise_and(bits, (1 << fraction_bits) - 1)
    # A number too small for an exponent of its own is its fraction as an integer, times the smallest number.
    normal = bitwise_and(bitcast_convert_type(convert(fraction, x.dtype), integer) >> fraction_bits, 2 * bias + 1)
    exponent = where(equal(exponent, 0), normal - (bias - 1 + fraction_bits), exponent)
    return convert(exponent - (bias - 1), np.dtype("int32"))


def times_power_of_two(x: Any, power: Any) -> Any:
    """`x * 2 ** power` of numbers and integers, by two factors, as one alone could be out of range."""
    integer, fraction_bits, bias = _layout(x.dtype)
    half = power >> 1
    for part in (half, power - half):
        x = x * bitcast_convert_type((convert(part, integer) + bias) << fraction_bits, x.dtype)
    return x


def _none_of(x: Any) -> Any:
    """A mask of elements without a power of two: zeros, infinities, NaNs."""
    return bitwise_not(bitwise_and(less(abs(x), np.inf), not_equal(x, 0)))
