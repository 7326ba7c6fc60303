"""Modified Bessel functions of the first kind, times exp(-abs(x)), elementwise."""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise.arithmetic import abs, max, sign
from xlamini.primitives.elementwise.comparison import gt
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp
from xlamini.primitives.elementwise.power import rsqrt
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.special.formula import Formula, epsilon, horner


@elementwise(family=Formula, accepts=FLOAT, flops=3 * TRANSCENDENTAL)
def bessel_i0e(x: Any) -> Any:
    """The modified Bessel function of the first kind of order 0, times `exp(-abs(x))`, elementwise.

    >>> bessel_i0e(1.0)
    Array(0.4657596, dtype=float32, weak_type=True)
    """


@elementwise(hlo="chlo.bessel_i1e", accepts=FLOAT, flops=3 * TRANSCENDENTAL)
def bessel_i1e(x: Any) -> Any:
    """The modified Bessel function of the first kind of order 1, times `exp(-abs(x))`, elementwise.

    >>> bessel_i1e(1.0)
    Array(0.20791042, dtype=float32, weak_type=True)
    """


@bessel_i0e.formula
def _(x: Any) -> Any:
    """DLMF 10.25.2 up to 8, where all terms are positive; beyond, a polynomial in 1 / x of best fit."""
    wide = epsilon(x) < 1e-10
    x = abs(x)
    quarter = 0.25 * x * x
    near = exp(-x) * horner(quarter, [1 / math.factorial(k) ** 2 for k in reversed(range(23 if wide else 15))])
    far = rsqrt(x) * horner(16 / max(x, 8.0) - 1, _FAR if wide else _FAR_SINGLE)
    return where(gt(x, 8), far, near)


# Chebyshev fits of sqrt(x) * bessel_i0e(x) on [8, inf), as polynomials in 16 / x - 1, highest power first.
_FAR = (
    3.629355229718733e-11, -1.4824893214970786e-10, -2.8033819978869995e-10, 9.735776625085242e-10,
    1.1050558794424347e-09, -2.9337366286377844e-09, -3.1346276429240787e-09, 5.191958083669399e-09,
    7.3359687108161536e-09, -4.305727426988361e-09, -1.3326094405766387e-08, -7.1010934904762744e-09,
    7.534355843803342e-09, 2.1620199017859248e-08, 3.932889375114634e-08, 8.871360038754707e-08,
    2.973596046562712e-07, 1.48384809739718e-06, 1.1143033800708978e-05, 0.00013621607437904054,
    0.0033605519836677504, 0.40217650944500816,
)
_FAR_SINGLE = (
    3.626670384797085e-07, 1.639134871575251e-06, 1.111214828523939e-05, 0.00013615603206676124,
    0.0033605557001427145, 0.4021765128154442,
)


@bessel_i0e.derivative
def _(x: Any, *, out: Any) -> Any:
    return bessel_i1e(x) - sign(x) * out


@bessel_i1e.derivative
def _(x: Any, *, out: Any) -> Any:
    nonzero = abs(x) > epsilon(x)
    safe = where(nonzero, x, 1.0)
    return where(nonzero, bessel_i0e(safe) - out * (sign(safe) + 1 / safe), 0.5)
