"""The natural logarithm of positive normal numbers, for other formulas.

XLA's own takes one element at a time in float64, and in float32 looks at what numbers cannot be here.

The number is `2**k * (1 + f)` with f between `sqrt(1 / 2) - 1` and `sqrt(2) - 1`, and `log(1 + f)` is
`f - f**2 / 2 + f**3 * P(f)`. There is no division in it: where one is used twice, XLA computes it in a loop of its own.

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 300 bits.
"""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.bitwise import bitwise_or, shift_left, shift_right_logical
from xlamini.primitives.cpu_math.floats import FLOAT32, FLOAT64, bits_of, from_bits, halved_horner

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
_LOG_2 = {FLOAT32: (0.693359375, -0.0002121944400546906), FLOAT64: (0.6931471803691238, 1.9082149292705877e-10)}

# How many bits the fraction has, what is added to the exponent, and the bits of sqrt(1 / 2).
_FORMAT = {FLOAT32: (23, 127, 0x3F3504F3), FLOAT64: (52, 1023, 0x3FE6A09E667F3BCD)}


def log_normal(x: Any) -> Any:
    """The logarithm of positive, normal, finite numbers; NaN for NaN, arbitrary for all others."""
    bits, dtype = bits_of(x), aval_of(x).dtype
    (fraction, bias, root), (high, low) = _FORMAT[dtype], _LOG_2[dtype]
    one, whole = bias << fraction, (bias + fraction) << fraction  # the bits of 1 and 2**fraction
    exponent = shift_right_logical(bits + (one - root), fraction)
    power = from_bits(bitwise_or(exponent, whole)) - (2.0**fraction + bias)
    f = from_bits(bits - shift_left(exponent, fraction) + one) - 1
    square = f * f
    return power * high - ((0.5 * square - (square * f * halved_horner(f, square, _CUBIC[dtype]) + power * low)) - f)
