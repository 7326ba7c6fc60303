"""Sine, cosine and tangent.

In float32 they are computed in float64, with polynomials of half its precision, so that only the last rounding counts.
In float64 the remainder of the reduction is a sum of two numbers, and the quadrant of the angle selects a sine or a
cosine between -pi/4 and pi/4. Angles above 2**20 are left to XLA's op.

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 300 bits.
"""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.elementwise.bitwise import bitwise_and, shift_left
from xlamini.primitives.elementwise.comparison import ne
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import (
    FLOAT32,
    OWN_BELOW,
    WHOLE,
    add_exactly,
    bits_of,
    horner,
    quotient,
    with_sign,
)
from xlamini.primitives.forms.cpu.math.reduction import LARGEST, quarters, split, turns
from xlamini.primitives.forms.cpu.math.vector_lowering import vectorised

FEW, FEW_TANGENTS = 4096, 1024


@vectorised(largest_float64=LARGEST, few=FEW)
def sine(x: Any) -> Any:
    """The sine of a float32 of any size."""
    dtype = aval_of(x).dtype
    found = _sine_of_halves(*split(turns(x), 2)) if dtype == FLOAT32 else _sine_of_quarters(*quarters(x))
    return where(abs(x) < OWN_BELOW[dtype], x, found)


@vectorised(largest_float64=LARGEST, few=FEW)
def cosine(x: Any) -> Any:
    """The cosine of a float32 of any size."""
    if aval_of(x).dtype == FLOAT32:
        return _sine_of_halves(*split(turns(x), 2, offset=0.5))
    whole, high, low = quarters(x)
    return _sine_of_quarters(whole + 1, high, low)


@vectorised(largest_float64=LARGEST, few=FEW_TANGENTS)
def tangent(x: Any) -> Any:
    """The tangent of a float32 of any size."""
    dtype = aval_of(x).dtype
    found = _tangent_of_quarters(*split(turns(x), 4)) if dtype == FLOAT32 else _tangent(*quarters(x))
    return where(abs(x) < OWN_BELOW[dtype], x, found)


# --- float32


# sin(pi * sqrt(v)) / sqrt(v) for v in [0, 1 / 4], 6 terms: relative error 2**-35.
_SINE_OF_HALVES = (
    3.141592653536132, -5.167712764593, 2.550163317938427, -0.599252186531583, 0.08205035020147247,
    -0.007028303855203096,
)

# (1 - v) * tan(pi / 2 * sqrt(v)) / sqrt(v) for v in [0, 1 / 4], 5 terms: relative error 2**-35.
_TANGENT_OF_QUARTERS = (
    1.5707963267554275, -0.2788681238929191, -0.016846426804133556, -0.0016420938286482055, -0.00018850567024593755
)


def _sine_of_halves(whole: Any, rest: Any) -> Any:
    """The sine of `(whole + rest) * pi`, in float32."""
    return convert(with_sign(rest * horner(rest * rest, _SINE_OF_HALVES), shift_left(_integer(whole), 63)), FLOAT32)


def _tangent_of_quarters(whole: Any, rest: Any) -> Any:
    """The tangent of `(whole + rest) * pi / 2`, in float32."""
    v = rest * rest
    sine, cosine = rest * horner(v, _TANGENT_OF_QUARTERS), 1.0 - v
    odd = _odd(whole)
    return convert(where(odd, -cosine, sine) / where(odd, sine, cosine), FLOAT32)


def _integer(whole: Any) -> Any:
    """Bits of which the lowest 51 are those of a whole number."""
    return bits_of(whole + WHOLE)


def _odd(whole: Any) -> Any:
    return ne(bitwise_and(_integer(whole), 1), 0)


# --- float64


# (sin(r) / r - 1) / v and (cos(r) - 1 + v / 2) / v**2, with r = sqrt(v), for v in [0, 1.002 * (pi / 4)**2], 6 terms
# each: relative errors 2**-55 of the sine and 2**-59 of the cosine.
_SINE = (
    -0.16666666666666666, 0.008333333333330925, -0.00019841269836722437, 2.755731608382574e-06, -2.505112794596564e-08,
    1.591784866512194e-10,
)
_COSINE = (
    0.041666666666666664, -0.0013888888888887382, 2.480158729874308e-05, -2.755731726001471e-07, 2.0876143829213935e-09,
    -1.1382456865840483e-11,
)


def _sine_of_quarters(whole: Any, high: Any, low: Any) -> Any:
    """The sine of `whole * pi / 2 + high + low`, in float64."""
    v = high * high
    sine = high + _beyond_angle(v, high, low)
    parabola, left = _parabola(v)
    cosine = parabola + (left + _beyond_parabola(v, high, low))
    negative = shift_left(bitwise_and(_integer(whole), 2), 62)
    return with_sign(where(_odd(whole), cosine, sine), negative)


def _tangent(whole: Any, high: Any, low: Any) -> Any:
    """The tangent, in float64, as a quotient of sums of two numbers each."""
    v = high * high
    sine = add_exactly(high, _beyond_angle(v, high, low))
    parabola, left = _parabola(v)
    cosine = add_exactly(parabola, left + _beyond_parabola(v, high, low))
    odd = _odd(whole)
    above = [where(odd, -c, s) for s, c in zip(sine, cosine, strict=True)]
    below = [where(odd, s, c) for s, c in zip(sine, cosine, strict=True)]
    return quotient(above, below)


def _beyond_angle(v: Any, high: Any, low: Any) -> Any:
    """`sin(high + low) - high`, where v is `high**2`."""
    return high * v * horner(v, _SINE) + low * (1.0 - 0.5 * v)


def _parabola(v: Any) -> tuple[Any, Any]:
    """`1 - v / 2` and its rounding error. (XLA would simplify `add_exactly`, where a number is added.)"""
    half = 0.5 * v
    parabola = 1.0 - half
    return parabola, (1.0 - parabola) - half


def _beyond_parabola(v: Any, high: Any, low: Any) -> Any:
    """`cos(high + low) - (1 - v / 2)`, where v is `high**2`, rounded."""
    return v * v * horner(v, _COSINE) - high * low
