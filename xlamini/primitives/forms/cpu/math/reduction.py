"""Exact reduction of angles modulo a full circle: float32 of any size, float64 up to 2**20.

Both compute the nearest multiple of a fraction of the circle, and the remainder, by exact products: a constant is a sum
of terms with so few bits that multiplying by one of them rounds nothing. None of it needs a fused multiply-add, and
none is disturbed by one.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.rounding import RoundingMethod, round
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import FLOAT64

# 1 / (2 * pi) in terms of 29 bits, and where a sum ends, of 53 (computed with mpmath at 2000 bits).
_TERMS = (
    0.15915494272485375, 3.6704158115630214e-10, 5.690025167992954e-19, 1.4703036846932608e-27, 2.5867171752090537e-36
)
_LAST_OF_FOUR, _LAST = 1.470303687279978e-27, 9.458140970740169e-46

# From here on the first two terms are whole revolutions, since the last bit of a float32 is 2**-23 of it.
_WHOLE_TURNS = 2.0**83


def nearest(x: Any) -> Any:
    """The whole number nearest to x."""
    return round(x, RoundingMethod.TO_NEAREST_EVEN)


def turns(x: Any) -> list[Any]:
    """The angle x, a float32, in revolutions modulo 1, as float64 terms to be summed, each below 1 / 2.

    All but the last are exact. Added from the first, once the nearest number that matters has been taken from the
    first, they lose nothing to cancellation.
    """
    x = convert(x, FLOAT64)
    large = abs(x) >= _WHOLE_TURNS
    pairs = zip(_TERMS[2:], _TERMS[:3], strict=True)
    parts = [x * where(large, high, low) for high, low in pairs]
    return [*(y - nearest(y) for y in parts), x * where(large, _LAST, _LAST_OF_FOUR)]


def split(fractions: Sequence[Any], parts: int, offset: float = 0.0) -> tuple[Any, Any]:
    """Round `parts` times the revolutions plus `offset` to an integer; the remainder is between -1/2 and 1/2."""
    whole = nearest(functools.reduce(operator.add, fractions) * parts + offset)
    first, *others = fractions
    rest = functools.reduce(operator.add, others, first - (whole - offset) * (1 / parts))
    return whole, rest * parts


# pi / 2 in terms of 33 bits, the last of 53: times a whole number below 2**20 the first three are exact.
_QUARTER = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)

LARGEST = 2.0**20


def quarters(x: Any) -> tuple[Any, Any, Any]:
    """The multiple of pi / 2 nearest to x, a float64 up to `LARGEST`, and the rest in radians as a sum of two numbers.

    The steps are those of W. J. Cody and W. Waite, "Software Manual for the Elementary Functions" (1980), with the
    rounding error of each subtraction carried along.
    """
    whole = nearest(x * (2 / 3.141592653589793))
    rest, low = x - whole * _QUARTER[0], -(whole * _QUARTER[3])
    for term in _QUARTER[1:3]:
        product = whole * term
        before, rest = rest, rest - product
        low = low + ((before - rest) - product)
    high = rest + low
    return whole, high, (rest - high) + low
