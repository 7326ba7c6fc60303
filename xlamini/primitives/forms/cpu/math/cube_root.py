"""Cube root.

A linear function of the bits of `x` gives `r`, near `1 / cbrt(x)`; then `cbrt(x) = x * r**2 * (1 - e)**(-2/3)` with
`e = 1 - x * r**3`, small enough for a polynomial. That suffices for float32, computed in float64; float64 has a step of
Halley's method after it, from a start with so few bits that its square is exact.
"""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.elementwise.arithmetic import abs
from xlamini.primitives.elementwise.bitwise import bitwise_or, shift_left, shift_right_logical
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import (
    BITS,
    BITS_OF_2_TO_52,
    FLOAT32,
    bits_of,
    from_bits,
    from_subnormal,
    halves,
    horner,
    sign_of,
    subnormal_multiple,
    with_sign,
)
from xlamini.primitives.forms.cpu.math.vector_lowering import vectorised

# (1 - e)**(-2 / 3) for e in [-0.1018, 0.1024], 7 terms: error 2**-30 (`chebyfit` of mpmath, at 300 bits).
_CORRECTION = (
    0.9999999999849691, 0.6666667145445452, 0.5555556360719105, 0.49379046073167393, 0.45262864249286366,
    0.4295127615007151, 0.4065998882861504,
)

# 0x553EE8B4, from which a third of the upper half of the bits of x is to be taken (so abs(e) is smallest), with 2**52
# and 2**52 / 3 added.
_MINUEND = 6004800933346825.0


@vectorised()
def cube_root(x: Any) -> Any:
    """The cube root of any real number, negative ones included."""
    dtype, size = aval_of(x).dtype, abs(x)
    root = _rough(from_subnormal(size)) if dtype == FLOAT32 else _fine(size)
    # 0, whose bits wrap around, infinity and NaN are their own roots.
    usual = lt(bits_of(size) - 1, BITS[dtype].infinity - 1)
    return with_sign(where(usual, convert(root, dtype), size), sign_of(x))


def _rough(x: Any) -> Any:
    """The cube root of a normal float64, with an error of 2**-30; that of 0 is 0."""
    upper = from_bits(bitwise_or(shift_right_logical(bits_of(x), 32), BITS_OF_2_TO_52))
    inverse = from_bits(shift_left(bits_of(_MINUEND - upper * (1 / 3)), 32))
    root = x * (inverse * inverse)
    return root * horner(1.0 - root * inverse, _CORRECTION)


def _fine(x: Any) -> Any:
    """The cube root of a float64 that is not negative."""
    subnormal = x < 2.0**-1022
    x, unit = where(subnormal, subnormal_multiple(x), x), where(subnormal, 2.0**-358, 1.0)
    start, _ = halves(_rough(x))
    excess = x / (start * start) - start
    return (start + start * (excess / (3.0 * start + excess))) * unit
