"""Inverse sine and cosine.

Up to 1/2 the inverse sine is a polynomial; beyond, `asin(x) = pi/2 - 2 * asin(sqrt((1 - x) / 2))` leads there. Where
a number is taken from a multiple of pi, the rounding error of the difference is carried along. In float32 all is
computed in float64, with a polynomial of half its precision.

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 300 bits.
"""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.elementwise.arithmetic import abs
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.power import sqrt
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import FLOAT32, FLOAT64, OWN_BELOW, horner, sign_of, with_sign
from xlamini.primitives.forms.cpu.math.vector_lowering import vectorised

_BEYOND_IDENTITY = {
    # (asin(s) / s - 1) / z, with s = sqrt(z), for z in [0, 1 / 4], 6 terms: error of the inverse sine 2**-30.
    FLOAT32: (
        0.16666666337430908, 0.07500094543497424, 0.04459940152851218, 0.03110066273549457, 0.017149238357677253,
        0.03369084720283012,
    ),
    # The same with 13 terms: 2**-57.
    FLOAT64: (
        0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
        0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
        0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
    ),
}

_QUARTER, _QUARTER_LOW = 1.5707963267948966, 6.123233995736766e-17  # pi / 2


@vectorised()
def arcsine(x: Any) -> Any:
    """Between -pi/2 and pi/2; NaN beyond 1."""
    dtype = aval_of(x).dtype
    far, parts = _reduced(x)
    angle = _sum(where(far, 1.0, 0.0), where(far, -2.0, 1.0), *parts)
    return where(abs(x) < OWN_BELOW[dtype], x, with_sign(convert(angle, dtype), sign_of(x)))


@vectorised()
def arccosine(x: Any) -> Any:
    """Between 0 and pi; NaN beyond 1."""
    far, parts = _reduced(x)
    negative = x < 0
    quarters = where(far, where(negative, 2.0, 0.0), 1.0)
    factor = where(far, where(negative, -2.0, 2.0), where(negative, 1.0, -1.0))
    return convert(_sum(quarters, factor, *parts), aval_of(x).dtype)


def _reduced(x: Any) -> tuple[Any, tuple[Any, Any]]:
    """Argument reduction: `abs(x) > 1/2`, and the argument of the inverse sine to evaluate, as a sum of two numbers."""
    size = abs(convert(x, FLOAT64))
    far = size > 0.5
    z = where(far, 0.5 - 0.5 * size, size * size)
    s = where(far, sqrt(z), size)
    return far, (s, s * z * horner(z, _BEYOND_IDENTITY[aval_of(x).dtype]))


def _sum(quarters: Any, factor: Any, high: Any, low: Any) -> Any:
    """`quarters * pi/2 + factor * (high + low)`, rounded about once."""
    start, step = quarters * _QUARTER, factor * high
    total = start + step
    return total + (((start - total) + step) + (quarters * _QUARTER_LOW + factor * low))
