"""The natural logarithm of positive normal numbers, for other formulas, and two such formulas for float64.

XLA's own takes one element at a time in float64, and in float32 looks at what numbers cannot be here. Its logarithm of
`1 + x` is a polynomial near 0, which loses 128 units in the last place at the ends of its interval.

The number is `2**k * (1 + f)` with f between `sqrt(1 / 2) - 1` and `sqrt(2) - 1`, and `log(1 + f)` is
`f - f**2 / 2 + f**3 * P(f)`. There is no division in it: where one is used twice, XLA computes it in a loop of its own.

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 300 bits.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.primitives.elementwise.arithmetic import abs
from xlamini.primitives.elementwise.bitwise import bitwise_or, shift_left, shift_right_logical
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import (
    FLOAT32,
    FLOAT64,
    OWN_BELOW,
    bits_of,
    from_bits,
    halved_horner,
    sign_of,
    with_sign,
)
from xlamini.primitives.forms.cpu.math.vector_lowering import vectorised

# (log(1 + f) - f + f**2 / 2) / f**3 for f in [sqrt(1 / 2) - 1, sqrt(2) - 1]: 9 terms, error 2**-25; 20 terms, 2**-53.
_CUBIC = {
    FLOAT32: (
        0.33333331180030046, -0.24999996957950882, 0.200007157488921, -0.16667802319501254, 0.1424905764569748,
        -0.12425687331451106, 0.1168541992348674, -0.11479733846637635, 0.06971611471451178,
    ),
    FLOAT64: (
        0.33333333333333337, -0.2499999999999993, 0.19999999999993223, -0.16666666666697305, 0.1428571428759174,
        -0.12499999997109267, 0.11111110909841072, -0.0999999999631727, 0.09090919875998202, -0.08333345056413204,
        0.0769198812013375, -0.0714223204915847, 0.06671985555271291, -0.06265031869518063, 0.05837018351464999,
        -0.05368280388050548, 0.0537187789066478, -0.06129561980727906, 0.0566642324205218, -0.025061228095282464,
    ),
}

# log(2) in so few bits that a multiple of it is exact, and the rest.
LOG_2: dict[np.dtype, tuple[float, float]] = {
    FLOAT32: (0.693359375, -0.0002121944400546906),
    FLOAT64: (0.6931471803691238, 1.9082149292705877e-10),
}

# How many bits the fraction has, what is added to the exponent, and the bits of sqrt(1 / 2).
_FORMAT = {FLOAT32: (23, 127, 0x3F3504F3), FLOAT64: (52, 1023, 0x3FE6A09E667F3BCD)}


def log_normal(x: Any) -> Any:
    """The logarithm of positive, normal, finite numbers; NaN for NaN, arbitrary for all others."""
    power, f, _ = _parts(x)
    return _logarithm(power, f, f * f, power * LOG_2[aval_of(x).dtype][1])


@vectorised()
def log_one_plus(x: Any) -> Any:
    """The logarithm of `1 + x`."""
    return _log_one_plus(x)


@vectorised()
def inverse_hyperbolic_tangent(x: Any) -> Any:
    """Half the logarithm of `(1 + x) / (1 - x)`; NaN beyond 1.

    Below 1 / 2 the quotient is `1 + 2 * x + 2 * x**2 / (1 - x)`, which leaves less to be rounded in the division.
    """
    size = abs(x)
    near, twice = size < 0.5, size + size
    ratio = where(near, twice * size, twice) / (1.0 - size)
    found = 0.5 * _log_one_plus(where(near, twice + ratio, ratio))
    return where(size < OWN_BELOW[aval_of(x).dtype], x, with_sign(found, sign_of(x)))


# --- helpers


def _log_one_plus(x: Any) -> Any:
    """The logarithm of the rounded sum, corrected for what was rounded away.

    The correction is W. Kahan's, "Branch Cuts for Complex Elementary Functions" (1987), where it is a factor; as a term
    it needs no division. The sum's error is exact (D. E. Knuth, "The Art of Computer Programming", 4.2.2).
    """
    total = x + 1.0
    one = total - x
    lost = (x - (total - one)) + (1.0 - one)
    power, f, twice_inverse = _parts(total)
    square = f * f
    beyond = power * LOG_2[FLOAT64][1] + 0.5 * (lost * twice_inverse) * (1.0 - f + square)
    found = where(abs(x) < 2.0**-54, x, _logarithm(power, f, square, beyond))
    # Of -1 and below, infinity and NaN the sum is no positive finite number.
    return where(x > -1.0, where(x < math.inf, found, x), where(eq(x, -1.0), -math.inf, math.nan))


def _parts(x: Any) -> tuple[Any, Any, Any]:
    """The power and the fraction of `x = 2**power * (1 + fraction)`, and `2**(1 - power)`."""
    bits, dtype = bits_of(x), aval_of(x).dtype
    fraction, bias, root = _FORMAT[dtype]
    one, whole = bias << fraction, (bias + fraction) << fraction  # the bits of 1 and 2**fraction
    exponent = shift_right_logical(bits + (one - root), fraction)
    power = from_bits(bitwise_or(exponent, whole)) - (2.0**fraction + bias)
    f = from_bits(bits - shift_left(exponent, fraction) + one) - 1
    return power, f, from_bits(shift_left(2 * bias + 1 - exponent, fraction))


def _logarithm(power: Any, f: Any, square: Any, low: Any) -> Any:
    """`power * log(2) + log(1 + f)`, with `low` for the low part of the first product and whatever else is as small."""
    dtype = aval_of(f).dtype
    cubic = square * f * halved_horner(f, square, _CUBIC[dtype])
    return power * LOG_2[dtype][0] - ((0.5 * square - (cubic + low)) - f)
