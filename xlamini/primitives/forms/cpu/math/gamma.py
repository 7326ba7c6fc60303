"""The logarithm of the gamma function and its derivative.

Of positive numbers: near 2 a polynomial, below 1.5 the same one or two steps away (DLMF 5.5.1), above 2.5 Stirling's
formula with a polynomial for its series (DLMF 5.11.1, 5.11.2). Of negative numbers by reflection in a form that does
not subtract them from 1 (DLMF 5.5.3, 5.5.4). What a step or reflection multiplies comes under one logarithm.

The polynomials are `chebyfit(function, interval, terms)` of mpmath, at 200 and 300 bits.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.elementwise.comparison import eq, ge, lt, ne
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math.floats import FLOAT32, FLOAT64, horner, sign_of, with_sign
from xlamini.primitives.forms.cpu.math.logarithm import log_normal
from xlamini.primitives.forms.cpu.math.reduction import nearest
from xlamini.primitives.forms.cpu.math.vector_lowering import vectorised

# lgamma(2 + t) / t for t in [-1 / 2, 1 / 2]: 9 terms, error 2**-29; 18 terms, 2**-57.
_NEAR_TWO = {
    FLOAT32: (
        0.42278433509846713, 0.3224670180454995, -0.06735229409087408, 0.0205816254365885, -0.007385920884783578,
        0.00287886868374075, -0.0011874848136699278, 0.0005702512502829781, -0.00025056202146086636,
    ),
    FLOAT64: (
        0.42278433509846713, 0.3224670334241132, -0.06735230105319563, 0.02058080842778338, -0.007385551028935545,
        0.002890510330865901, -0.0011927539009983087, 0.0005096695196526673, -0.00022315497746292723,
        9.945761692157133e-05, -4.4923727564247656e-05, 2.050601970174762e-05, -9.45628851510172e-06,
        4.3828545383846665e-06, -1.9743106888421067e-06, 9.242852225162277e-07, -5.811277768921246e-07,
        2.7475390051909663e-07,
    ),
}

# What Stirling's formula leaves of lgamma(z), times z, for 1 / z**2 in [0, 0.16]: 4 terms, error 2**-28; 13, 2**-55.
_STIRLING = {
    FLOAT32: (0.08333333088053543, -0.002777282733238895, 0.0007774120152658641, -0.00041150514570790077),
    FLOAT64: (
        0.08333333333333331, -0.0027777777777425704, 0.0007936507810740789, -0.0005952362987525512,
        0.0008416146468954755, -0.0019112061273278312, 0.00621416883593992, -0.025211948545317147, 0.10689474701340294,
        -0.39730201679484567, 1.1113197941746704, -1.9839544447221413, 1.6579126428005446,
    ),
}

# (log(z) - 1 / (2 * z) - digamma(z)) * z**2 for 1 / z**2 in [0, 1 / 9]: 4 terms, error 2**-27; 12 terms, 2**-53.
_SLOPE = {
    FLOAT32: (0.08333332785321958, -0.008331742293831271, 0.0038935133431684155, -0.0029663488546991007),
    FLOAT64: (
        0.08333333333333326, -0.008333333333142599, 0.003968253884920039, -0.004166652178650307, 0.00757443060881869,
        -0.02101916489697652, 0.08064047398067098, -0.37430045081725144, 1.7458633558768843, -6.706334097588544,
        17.261883761190983, -21.29861333701341,
    ),
}

# sin(pi * sqrt(v)) / (pi * sqrt(v)) for v in [0, 1 / 4]: 5 terms, error 2**-28; 9 terms, 2**-62.
_SINE = {
    FLOAT32: tuple(c / math.pi for c in (
        3.1415926400772034, -5.167710076668315, 2.550077386528912, -0.5982904112834275, 0.07765591227601387
    )),
    FLOAT64: (
        1.0, -1.6449340668482264, 0.8117424252833393, -0.19075182412149616, 0.02614784780555096,
        -0.0023460808954639607, 0.0001484278414189103, -6.972099660851199e-06, 2.4502943624559793e-07,
    ),
}

# cos(pi * sqrt(v)) / (1 - 4 * v) for v in [0, 1 / 4]: 5 terms, error 2**-30; 9 terms, 2**-65.
_COSINE = {
    FLOAT32: (0.9999999991226092, -0.9348020250183898, 0.31949769930880445, -0.05718627209364952, 0.006041776532813292),
    FLOAT64: (
        1.0, -0.9348022005446793, 0.3195033242380492, -0.05724947190231324, 0.006332742747862203,
        -0.00047592037539358493, 2.589262194384223e-05, -1.0666850970497326e-06, 3.3478866930384306e-08,
    ),
}

_SMALLEST = {FLOAT32: 2.0**-126, FLOAT64: 2.0**-1022}
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


@vectorised()
def log_gamma(x: Any) -> Any:
    """The logarithm of the magnitude of the gamma function; infinite at its poles and for subnormal numbers."""
    dtype, size, negative = aval_of(x).dtype, abs(x), lt(x, 0)
    whole = nearest(size)
    rest, large = size - whole, ge(size, 2.5)
    inverse = 1 / where(large, size, size + 1)
    sine = abs(rest * horner(rest * rest, _SINE[dtype]))
    first = log_normal(where(large, size, _product(size, whole, where(negative, sine, 1), inverse, negative)))
    near = where(negative, -rest, rest) * horner(rest, _NEAR_TWO[dtype]) - first
    series = inverse * horner(inverse * inverse, _STIRLING[dtype]) + _HALF_LOG_2_PI
    far = size * (first - 1) + (series - 0.5 * first)
    found = where(large, where(negative, -log_normal(sine * size) - far, far), near)
    pole = bitwise_or(bitwise_and(negative, eq(rest, 0)), lt(size, _SMALLEST[dtype]))
    return where(bitwise_or(pole, eq(size, math.inf)), math.inf, found)


def _product(size: Any, whole: Any, sine: Any, inverse: Any, negative: Any) -> Any:
    """The product of the recurrence's steps to `2 + rest`; for negative numbers its inverse, reflected."""
    twice, once = eq(whole, 0), eq(whole, 1)
    above = where(twice, size * (size + 1), where(once, size, 1))
    return where(negative, sine * where(twice, inverse, where(once, 1, size)), above)


@vectorised()
def digamma(x: Any) -> Any:
    """The derivative of `log_gamma`; NaN at its poles below 0, infinite for 0 and subnormal numbers."""
    dtype, size, negative = aval_of(x).dtype, abs(x), lt(x, 0)
    small = lt(size, 3)
    zero = lt(size, _SMALLEST[dtype])
    first = 1 / where(zero, 1, size)
    shifted = where(small, size + 3, size)
    inverse = 1 / shifted
    square = inverse * inverse
    logarithm = where(eq(size, math.inf), math.inf, log_normal(shifted))
    series = logarithm - 0.5 * inverse - square * horner(square, _SLOPE[dtype])
    # 1 / (size + 1) + 1 / (size + 2) as one fraction: digamma(size) is the result, less `first` where it is small.
    found = where(small, series - (size + size + 3) / ((size + 1) * (size + 2)), series)
    shown = where(negative, where(small, 0, first), where(small, -first, 0))
    found = where(negative, _cotangent(size) + shown + found, shown + found)
    return where(zero, with_sign(where(zero, -math.inf, x), sign_of(x)), found)


def _cotangent(size: Any) -> Any:
    """`pi * cot(pi * size)`, NaN where that has a pole."""
    dtype, rest = aval_of(size).dtype, size - nearest(size)
    square = rest * rest
    sine = rest * horner(square, _SINE[dtype])
    return where(ne(rest, 0), (1 - 4 * square) * horner(square, _COSINE[dtype]) / sine, math.nan)
