"""Powers of two, and the hyperbolic sine and cosine, in float64.

XLA multiplies by log(2) before it takes a power of e, and adds log(1 / 2) before it takes a hyperbolic sine. What that
rounds away of a large exponent costs the power up to 720 units in the last place. Here a multiple of log(2) is taken
from the argument without rounding, and becomes the exponent of the result (W. J. Cody and W. Waite, "Software Manual
for the Elementary Functions", 1980).

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 300 bits.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.elementwise.arithmetic import abs, max
from xlamini.primitives.elementwise.comparison import le, ne
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import (
    FLOAT64,
    OWN_BELOW,
    halved_horner,
    horner,
    sign_of,
    times_power_of_two,
    to_subnormal,
    with_sign,
)
from xlamini.primitives.forms.cpu.math.logarithm import LOG_2
from xlamini.primitives.forms.cpu.math.reduction import nearest
from xlamini.primitives.forms.cpu.math.vector_lowering import vectorised

# (2**f - 1) / f for f in [-1 / 2, 1 / 2], 11 terms: error of the power 2**-57.
_POWER = (
    0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888, 0.0013333558146416936,
    0.0001540353044173605, 1.525273382983612e-05, 1.321544258792169e-06, 1.0178062445845774e-07, 7.072585949269223e-09,
    4.454960598186518e-10,
)


@vectorised()
def power_of_two(x: Any) -> Any:
    """2**x, also where that is subnormal."""
    whole = nearest(x)
    rest = x - whole
    power = 1.0 + rest * halved_horner(rest, rest * rest, _POWER)
    small = x < -1022.0
    scaled = times_power_of_two(power, where(small, whole + 1074.0, whole))
    found = where(small, to_subnormal(scaled, FLOAT64), scaled)
    inside = where(x < 1024.0, where(x < -1075.0, 0.0, found), math.inf)
    return where(ne(x, x), x, inside)


# (sinh(s) / s - 1) / v and (cosh(s) - 1 - v / 2) / v**2, with s = sqrt(v), for v in [0, 1.002 * (log(2) / 2)**2], 5
# terms each: relative errors 2**-59 of the sine and 2**-66 of the cosine.
_SINE = (
    0.16666666666666669, 0.008333333333330039, 0.00019841269863171557, 2.7557268276905696e-06, 2.5100472505694996e-08
)
_COSINE = (
    0.041666666666666664, 0.0013888888888886537, 2.4801587317228724e-05, 2.7557282838800484e-07, 2.09112987659402e-09
)

# The largest number whose hyperbolic sine and cosine are finite: 1025 * log(2), rounded down.
_LARGEST = 710.4758600739439


@vectorised()
def hyperbolic_sine(x: Any) -> Any:
    """`(e**x - e**-x) / 2`, without its cancellation and overflow."""
    return where(abs(x) < OWN_BELOW[aval_of(x).dtype], x, with_sign(_hyperbolic(abs(x), sine=True), sign_of(x)))


@vectorised()
def hyperbolic_cosine(x: Any) -> Any:
    """`(e**x + e**-x) / 2`, without its overflow."""
    return _hyperbolic(abs(x), sine=False)


def _hyperbolic(size: Any, *, sine: bool) -> Any:
    """By the addition theorem: of the nearest multiple of log(2), where both functions are exact, and of the rest.

    Both are halved at the end, so that nothing overflows: `2**whole` is taken out of the multiple's functions.
    """
    within = le(size, _LARGEST)
    whole, high, low = _multiple_of_log_2(where(within, size, 0.0))
    inverse = times_power_of_two(1.0, max(-2.0 * whole, -128.0))
    larger, smaller = 1.0 + inverse, 1.0 - inverse
    first, second = (smaller, larger) if sine else (larger, smaller)
    v = high * high
    beyond_one = v * (0.5 + v * horner(v, _COSINE))
    beyond_rest = high * v * horner(v, _SINE) + low
    found = first + (second * high + (first * beyond_one + second * beyond_rest))
    return where(within, times_power_of_two(found, whole - 1.0), where(ne(size, size), size, math.inf))


def _multiple_of_log_2(x: Any) -> tuple[Any, Any, Any]:
    """The multiple of log(2) nearest to x, and the rest as a sum of two numbers."""
    whole = nearest(x * (1 / math.log(2)))
    upper, lower = LOG_2[FLOAT64]
    rest = x - whole * upper
    high = rest - whole * lower
    return whole, high, (rest - high) - whole * lower
