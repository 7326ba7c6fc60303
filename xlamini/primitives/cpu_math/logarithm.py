"""The natural logarithm of float64, for other formulas: XLA's own takes one element at a time.

The number is `2**k * (1 + f)` with f between `sqrt(1 / 2) - 1` and `sqrt(2) - 1`, and `log(1 + f)` is
`f - f**2 / 2 + f**3 * P(f)`. There is no division in it: where one is used twice, XLA computes it in a loop of its own.

The polynomial is `chebyfit(function, interval, terms)` of mpmath, at 300 bits.
"""
from __future__ import annotations

from typing import Any

from xlamini.primitives.bitwise import bitwise_or, shift_left, shift_right_logical
from xlamini.primitives.cpu_math.floats import BITS_OF_2_TO_52, bits_of, from_bits, horner

# (log(1 + f) - f + f**2 / 2) / f**3 for f in [sqrt(1 / 2) - 1, sqrt(2) - 1], 20 terms: error 2**-53.
_CUBIC = (
    0.33333333333333337, -0.2499999999999993, 0.19999999999993223, -0.16666666666697305, 0.1428571428759174,
    -0.12499999997109267, 0.11111110909841072, -0.0999999999631727, 0.09090919875998202, -0.08333345056413204,
    0.0769198812013375, -0.0714223204915847, 0.06671985555271291, -0.06265031869518063, 0.05837018351464999,
    -0.05368280388050548, 0.0537187789066478, -0.06129561980727906, 0.0566642324205218, -0.025061228095282464,
)

# log(2) in 32 bits, a multiple of which is exact, and the rest.
_LOG_2, _LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10

# What is to be added to the bits of sqrt(1 / 2) to get those of 1.
_TO_ONE = 0x3FF0000000000000 - 0x3FE6A09E667F3BCD


def log_normal(x: Any) -> Any:
    """Of positive, normal, finite numbers; of others it is any number, or NaN for NaN."""
    bits = bits_of(x)
    exponent = shift_right_logical(bits + _TO_ONE, 52)
    power = from_bits(bitwise_or(exponent, BITS_OF_2_TO_52)) - (2.0**52 + 1023)
    f = from_bits(bits - shift_left(exponent, 52) + 0x3FF0000000000000) - 1
    square = f * f
    return power * _LOG_2 - ((0.5 * square - (square * f * horner(f, _CUBIC) + power * _LOG_2_LOW)) - f)
