"""The complement of the error function and its derivative `exp(-x**2)`, in float32.

XLA computes three polynomials and an exponential, and chooses. Here `erfc(x) = exp(-x**2) * S(w) / (1 + p * x)` for all
positive x, with `w = p * x / (1 + p * x)` (M. M. Shepherd and J. G. Laframboise, Mathematics of Computation 36, 1981).
The square is a sum of two numbers, because what is rounded away of it is an error of the power.

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 120 bits.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.elementwise.arithmetic import abs
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import FLOAT32, bits_of, from_bits, horner, times_power_of_two
from xlamini.primitives.forms.cpu.math.logarithm import LOG_2
from xlamini.primitives.forms.cpu.math.reduction import nearest
from xlamini.primitives.forms.cpu.math.vector_lowering import vectorised

_P = 0.48

# (S(w) - 1) / w for x in [0, 9.3], 8 terms: relative error of S 2**-24.
_SCALED = (
    -1.3507898080926832, 0.6386785286897001, 0.1669153293241519, -0.15579131550241493, -0.060499677798787996,
    -0.05258615663159385, 0.1366566443753769, -0.051813941761638754,
)

# (exp(r) - 1 - r) / r**2 for r in [-0.35, 0.35], 5 terms: error of the power 2**-26.
_POWER = (0.5, 0.16666573381900845, 0.04166655011030512, 0.008363773874405574, 0.0013926926614021907)

# From here on the results are less than the smallest normal number.
_LARGEST, _LARGEST_OF_POWER = 9.2, 9.345


@vectorised()
def complement(x: Any) -> Any:
    """Between 0 and 2."""
    size = abs(x)
    below = _P * size
    inverse = 1.0 / (1.0 + below)
    w = below * inverse
    tail = _power_of_square(size) * (inverse + inverse * (w * horner(w, _SCALED)))
    tail = where(size > _LARGEST, 0.0, tail)
    return where(x < 0.0, 2.0 - tail, tail)


@vectorised()
def gaussian(x: Any) -> Any:
    """`exp(-x**2)`."""
    size = abs(x)
    return where(size > _LARGEST_OF_POWER, 0.0, _power_of_square(size))


def _power_of_square(x: Any) -> Any:
    """`exp(-x**2)` of a number up to `_LARGEST_OF_POWER`."""
    high = from_bits(bitwise_and(bits_of(x), 0xFFFFF000))  # 12 bits, so that its square is exact
    square, low = high * high, (x - high) * (x + high)
    whole = nearest(square * (-1 / math.log(2)))
    upper, lower = LOG_2[FLOAT32]
    rest = (-square - whole * upper) - (whole * lower + low)
    return times_power_of_two(1.0 + (rest + rest * rest * horner(rest, _POWER)), whole)
