"""Inverse tangent, of a number and of the coordinates of a point.

Both are the angle of a point in the plane: that of the smaller coordinate over the larger one, put into the right
octant. In float32 all is computed in float64, with a polynomial of half its precision. In float64 larger ratios
are taken to pi/4, so that the polynomial serves a smaller interval.

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 300 bits.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.elementwise.arithmetic import abs
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.elementwise.comparison import eq, gt, ne
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import (
    FLOAT32,
    FLOAT64,
    OWN_BELOW,
    bits_of,
    from_subnormal,
    horner,
    minus_where,
    remainder,
    sign_of,
    to_subnormal,
    with_sign,
)
from xlamini.primitives.forms.cpu.math.vector_lowering import vectorised

# atan(t) / t, with t = sqrt(v), for v in [0, 1], 11 terms: relative error 2**-31.
_SINGLE = (
    0.9999999995535376, -0.33333322488911593, 0.19999558100363982, -0.14278576024807985, 0.1105077127584966,
    -0.08785043282362845, 0.06685281517877424, -0.04392841073326746, 0.021912945865448393, -0.007030669470424213,
    0.001057607438057242,
)

# Ratios above this one have angles above 1/2, whose unit in the last place is twice that of those below.
_OBLIQUE = 35 / 64

# (atan(t) / t - 1) / v, with t = sqrt(v), for v in [0, (35 / 64)**2], 14 terms: error of the inverse tangent 2**-57.
_DOUBLE = (
    -0.3333333333333333, 0.19999999999999757, -0.1428571428566123, 0.11111111106539669, -0.09090908884684713,
    0.07692302097587565, -0.06666567843795562, 0.05881160139329385, -0.05253028608512965, 0.047004310132347515,
    -0.0407987512858522, 0.03164551772986479, -0.018595137891223364, 0.005853234395900158,
)

_SMALLEST_NORMAL = {FLOAT32: 2.0**-126, FLOAT64: 2.0**-1022}

# pi / 4 as a sum of two numbers, the first so short that small multiples of it are exact.
_EIGHTH, _EIGHTH_LOW = 0.7853981633974483, 3.061616997868383e-17


@vectorised(few=512)
def arctangent(x: Any) -> Any:
    """Between -pi/2 and pi/2."""
    dtype = aval_of(x).dtype
    size = abs(convert(x, FLOAT64))
    steep = size > 1.0
    near, far = where(steep, 1.0, size), where(steep, size, 1.0)
    angle = _single(near / far, steep) if dtype == FLOAT32 else _double(near, far, steep)
    return where(abs(x) < OWN_BELOW[dtype], x, with_sign(convert(angle, dtype), sign_of(x)))


@vectorised()
def arctangent_of_point(y: Any, x: Any) -> Any:
    """Between -pi and pi, of the point (x, y); whether a zero is positive or negative counts."""
    dtype = aval_of(x).dtype
    wide, tall, behind = abs(x), abs(y), ne(sign_of(x), 0)
    steep = gt(bits_of(tall), bits_of(wide))  # subnormal numbers would compare equal
    near, far = where(steep, wide, tall), where(steep, tall, wide)
    if dtype == FLOAT32:
        near, far = from_subnormal(near), from_subnormal(far)
        equal = bitwise_and(eq(near, far), gt(far, 0.0))  # also of two infinities
        ratio = where(equal, 1.0, near / (far + 1e-300))  # 0 / 0 is to be 0
        angle, small = _single(ratio, steep, behind), ratio * 2.0**149
    else:
        # The sum must not overflow, and the numbers must not be subnormal.
        scale = where(far < 2.0**400, 2.0**600, 0.25)
        near, far = from_subnormal(near, scale), from_subnormal(far, scale)
        angle = _double(near, far, steep, behind)
        in_between = bitwise_and(far > 0.0, far < math.inf)
        small = where(in_between, near * 2.0**500 / far * 2.0**574, 0.0)
    # A subnormal angle is the ratio, as neither quadrant nor octant has changed it.
    found = where(angle < _SMALLEST_NORMAL[dtype], to_subnormal(small, dtype), convert(angle, dtype))
    return with_sign(found, sign_of(y))


def _single(ratio: Any, steep: Any, behind: Any = None) -> Any:
    """The angle of the point (1, ratio), or (ratio, 1) where steep, or its mirror image where `behind`."""
    eighths, backward = _octant(0.0, steep, behind)
    ratio = minus_where(backward, ratio)
    return eighths * (math.pi / 4) + ratio * horner(ratio * ratio, _SINGLE)


def _double(near: Any, far: Any, steep: Any, behind: Any = None) -> Any:
    """The angle of the point (far, near), or (near, far) where steep, or its mirror image where `behind`."""
    alike = eq(near, far)  # also two zeros or infinities
    oblique = bitwise_or(near > _OBLIQUE * far, bitwise_and(alike, far > 0.0))
    eighths, backward = _octant(where(oblique, 1.0, 0.0), steep, behind)
    above = where(alike, 0.0, where(oblique, near - far, near))
    below = where(alike, 1.0, where(oblique, near + far, far))
    ratio = minus_where(backward, above / below)
    rest = remainder(minus_where(backward, above), ratio, below)
    low = where(abs(rest) < math.inf, rest, 0.0) / below  # the rest is NaN if a coordinate is infinite
    v = ratio * ratio
    return eighths * _EIGHTH + (ratio + (ratio * v * horner(v, _DOUBLE) + (eighths * _EIGHTH_LOW + low)))


def _octant(eighths: Any, steep: Any, behind: Any) -> tuple[Any, Any]:
    """The eighths of a half circle to add to an angle, and a mask of the angles that are subtracted from them."""
    eighths = where(steep, 2.0 - eighths, eighths)
    return (eighths, steep) if behind is None else (where(behind, 4.0 - eighths, eighths), ne(steep, behind))
