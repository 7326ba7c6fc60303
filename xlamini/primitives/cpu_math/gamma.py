"""The logarithm of the gamma function and its derivative, of float32.

Of positive numbers: near 2 a polynomial, elsewhere below 6 the same a few steps away (DLMF 5.5.1), above by Stirling's
formula (DLMF 5.11.1, 5.11.2). Of negative numbers by reflection (DLMF 5.5.3, 5.5.4), in a form that subtracts nothing
from 1. What a step or the reflection multiplies comes under one logarithm.

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 200 bits.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.comparison import eq, ge, lt, ne
from xlamini.primitives.cpu_math.floats import horner
from xlamini.primitives.cpu_math.reduction import nearest
from xlamini.primitives.cpu_math.vectorised import vectorised
from xlamini.primitives.exponential import log
from xlamini.primitives.select import where

# lgamma(2 + t) / t for t in [-1 / 2, 1 / 2], 10 terms: error 2**-32.
_NEAR_TWO = (
    0.4227843350004583, 0.3224670334689425, -0.0673522814721006, 0.020580799471518252, -0.007386174155633413,
    0.002890795321559696, -0.0011858600344983208, 0.0005065171429518161, -0.0002538170956727826, 0.00011347281994554691,
)

# sin(pi * sqrt(v)) / sqrt(v) for v in [0, 1 / 4], 5 terms: error 2**-26.
_SINE = (3.1415926400772034, -5.167710076668315, 2.550077386528912, -0.5982904112834275, 0.07765591227601387)

# cos(pi * sqrt(v)) / (1 - 4 * v) for v in [0, 1 / 4], 5 terms: error 2**-30.
_COSINE = (0.9999999991226092, -0.9348020250183898, 0.31949769930880445, -0.05718627209364952, 0.006041776532813292)

_LARGE = 5.5


@vectorised()
def log_gamma(x: Any) -> Any:
    """The logarithm of the magnitude of the gamma function."""
    size, negative = abs(x), lt(x, 0)
    sine = abs(_sine(size))
    large = ge(size, _LARGE)
    inverse = 1 / where(large, size, 1)
    t, above, below = _near_two(size, negative)
    product = where(negative, math.pi * above, above) / where(negative, sine * below, below)
    first = log(where(large, size, product))
    near = where(negative, -t, t) * horner(t, _NEAR_TWO) + first
    far = size * (first - 1) + (_HALF_LOG_2_PI - 0.5 * first) + inverse * horner(inverse * inverse, _STIRLING)
    reflected = log(math.pi * inverse / sine) - far
    found = where(large, where(negative, reflected, far), near)
    pole = bitwise_and(negative, eq(sine, 0))
    return where(bitwise_or(pole, eq(size, math.inf)), math.inf, found)


_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260)


def _near_two(size: Any, negative: Any) -> tuple[Any, Any, Any]:
    """The distance t from 2 after some steps of 1 from `size`, and what the steps come to, as a fraction.

    Of negative numbers it is the inverse, times `1 / size`, which stands beside the sine in the reflection.
    """
    up, twice = lt(size, 1.5), lt(size, 0.5)
    t = where(twice, size, where(up, size - 1, size - 2))
    below = where(twice, size * (size + 1), where(up, size, 1))
    above_negative = where(twice, size + 1, 1)
    above = 1.0
    for k in (1, 2, 3):
        down = ge(size, k + 1.5)
        t = where(down, size - (k + 2), t)
        above = above * where(down, size - k, 1)
    below_negative = above * where(up, 1, size)
    return t, where(negative, above_negative, above), where(negative, below_negative, below)


def _sine(size: Any) -> Any:
    """The sine of pi times a number that is not negative, but for its sign."""
    rest = size - nearest(size)
    return rest * horner(rest * rest, _SINE)


@vectorised()
def digamma(x: Any) -> Any:
    """The derivative of the logarithm of the gamma function; NaN at its poles."""
    size, negative = abs(x), lt(x, 0)
    small = lt(size, _SHIFT)
    first = where(eq(size, 0), math.nan, 1 / size)
    # 1 / (size + 1) + 1 / (size + 2) + …, as the logarithmic derivative of a product.
    product, slope = size + 1, 1.0
    for k in range(2, _SHIFT):
        slope = slope * (size + k) + product
        product = product * (size + k)
    shifted = where(small, size + _SHIFT, size)
    inverse = 1 / shifted
    square = inverse * inverse
    series = log(shifted) - 0.5 * inverse - square * horner(square, _STIRLING_SLOPE)
    found = where(small, series - slope / product, series)
    # That is digamma(size), plus `first` where it is small.
    shown = where(negative, where(small, 0, first), where(small, -first, 0))
    return where(negative, _cotangent(size) + shown + found, shown + found)


_SHIFT = 6
_STIRLING_SLOPE = (1 / 12, -1 / 120, 1 / 252)


def _cotangent(size: Any) -> Any:
    """`pi * cot(pi * size)`, NaN where that has a pole."""
    rest = size - nearest(size)
    square = rest * rest
    sine = rest * horner(square, _SINE)
    return where(ne(rest, 0), math.pi * (1 - 4 * square) * horner(square, _COSINE) / sine, math.nan)
