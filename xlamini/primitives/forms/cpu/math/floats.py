"""Floats by their bits, and polynomials."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import aval_of, literal
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or, bitwise_xor, shift_left
from xlamini.primitives.elementwise.convert_element_type import bitcast_convert_type, convert
from xlamini.primitives.elementwise.select import where

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class FloatBits(NamedTuple):
    """The layout of a float's bits, and the unsigned integers that hold them."""

    dtype: np.dtype
    width: int
    sign: int
    infinity: int
    fraction: int
    """How many of the bits are the fraction; the exponent is above them."""


BITS: dict[np.dtype, FloatBits] = {
    FLOAT32: FloatBits(np.dtype(np.uint32), 32, 1 << 31, 0x7F800000, 23),
    FLOAT64: FloatBits(np.dtype(np.uint64), 64, 1 << 63, 0x7FF0000000000000, 52),
}


OWN_BELOW: dict[np.dtype, float] = {FLOAT32: 2.0**-12, FLOAT64: 2.0**-27}
"""Below it sine, tangent and their inverses are the number itself, -0.0 and subnormal ones too.

XLA lets the CPU take those for 0 wherever it calculates.
"""


def bits_of(x: Any) -> Any:
    """The bits of floats as unsigned integers."""
    return bitcast_convert_type(x, BITS[aval_of(x).dtype].dtype)


def from_bits(bits: Any) -> Any:
    """The floats that have these bits."""
    return bitcast_convert_type(bits, FLOAT32 if aval_of(bits).dtype.itemsize == 4 else FLOAT64)


def sign_of(x: Any) -> Any:
    """The sign bit of x, and no other."""
    return bitwise_and(bits_of(x), BITS[aval_of(x).dtype].sign)


def with_sign(x: Any, sign: Any) -> Any:
    """x, or -x where the sign bit is set."""
    return from_bits(bitwise_xor(bits_of(x), sign))


def minus_where(condition: Any, x: Any) -> Any:
    """-x where the condition holds, x otherwise.

    It uses x once, so that XLA computes x in the same loop even if that takes a division.
    """
    bits = BITS[aval_of(x).dtype]
    return with_sign(x, where(condition, literal(bits.sign, bits.dtype), literal(0, bits.dtype)))


def times_power_of_two(x: Any, whole: Any) -> Any:
    """`x * 2**whole`, where both it and x are normal numbers; the sum leaves `whole` in the lowest bits."""
    fraction = BITS[aval_of(whole).dtype].fraction
    return from_bits(bits_of(x) + shift_left(bits_of(whole + 1.5 * 2.0**fraction), fraction))


def horner(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, the constant term first."""
    out: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        out = out * x + c
    return out


def halved_horner(x: Any, square: Any, coefficients: Sequence[float]) -> Any:
    """Horner's scheme in two independent halves, given x**2: the CPU computes the halves in parallel."""
    return horner(square, coefficients[1::2]) * x + horner(square, coefficients[::2])


def from_subnormal(x: Any, scale: Any = None) -> Any:
    """Numbers that are not negative in float64, times `scale`, right also for subnormal ones.

    XLA lets the CPU take subnormal numbers for 0 wherever it calculates; their bits are multiples of the smallest one.
    """
    if aval_of(x).dtype == FLOAT32:
        return where(x < 2.0**-126, convert(bits_of(x), FLOAT64) * 2.0**-149, convert(x, FLOAT64))
    return where(x < 2.0**-1022, subnormal_multiple(x) * 2.0**-537 * (scale * 2.0**-537), x * scale)


def subnormal_multiple(x: Any) -> Any:
    """A subnormal float64 that is not negative, in units of 2**-1074, the smallest."""
    return from_bits(bitwise_or(bits_of(x), BITS_OF_2_TO_52)) - 2.0**52


def to_subnormal(multiple: Any, dtype: np.dtype) -> Any:
    """The subnormal float of this dtype that is the nearest to a float64, in units of its smallest number."""
    bits = bits_of(multiple + 2.0**52) - literal(BITS_OF_2_TO_52, BITS[FLOAT64].dtype)
    return from_bits(convert(bits, BITS[dtype].dtype))


BITS_OF_2_TO_52 = 0x4330000000000000

# Adding it to a float64 of magnitude up to 2**51 leaves the nearest whole number in the lowest bits of the sum.
WHOLE = 1.5 * 2.0**52


def add_exactly(x: Any, y: Any) -> tuple[Any, Any]:
    """x + y rounded, and the rounding error; x must be the larger in magnitude (T. J. Dekker, 1971)."""
    total = x + y
    return total, y - (total - x)


def quotient(above: Sequence[Any], below: Sequence[Any]) -> Any:
    """The quotient of two float64 sums of two numbers, as `add_exactly` gives them; nearly correctly rounded."""
    inverse = 1.0 / below[0]
    first = above[0] * inverse
    return first + (remainder(above[0], first, below[0]) + (above[1] - first * below[1])) * inverse


def remainder(x: Any, ratio: Any, y: Any) -> Any:
    """`x - ratio * y` in float64, exactly, where `ratio` is about x / y."""
    for product in [p * q for p in halves(ratio) for q in halves(y)]:
        x = x - product
    return x


def halves(x: Any) -> tuple[Any, Any]:
    """A float64 as a sum of two numbers of 26 and 27 bits, products of which are exact."""
    high = from_bits(bitwise_and(bits_of(x), 0xFFFFFFFFF8000000))
    return high, x - high
