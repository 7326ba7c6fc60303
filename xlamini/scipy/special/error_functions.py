"""Error functions of real and complex arguments, plain and scaled."""
from __future__ import annotations

import math
from typing import Any

from xlamini.core.tracer import aval_of
from xlamini.numpy.ufunc import ufunc
from xlamini.primitives import complex as complex_ops
from xlamini.primitives.arithmetic import abs, max, min
from xlamini.primitives.convert import convert
from xlamini.primitives.elementwise import COMPLEX, kind_of
from xlamini.primitives.exponential import exp
from xlamini.primitives.promotion import promoted_inexact
from xlamini.primitives.rounding import floor
from xlamini.primitives.select import where
from xlamini.primitives.special import error_function
from xlamini.primitives.special.formula import horner
from xlamini.runtime.array import Array
from xlamini.scipy.special.declaration import special
from xlamini.scipy.special.fits import DAWSON, DAWSON_FAR, ERFCX
from xlamini.transforms.custom.custom_jvp import custom_jvp
from xlamini.typing import ArrayLike

_SLOPE = 2 / math.sqrt(math.pi)


@ufunc(error_function.erf, promoted_inexact)
def erf(x: ArrayLike) -> Array:
    """The error function of each element: the integral of `2 / sqrt(pi) * exp(-t ** 2)` from 0 to x.

    >>> erf(0.5)
    Array(0.5204999, dtype=float32, weak_type=True)
    """
    ...


@ufunc(error_function.erfc, promoted_inexact)
def erfc(x: ArrayLike) -> Array:
    """`1 - erf(x)` of each element, precise also where x is large.

    >>> erfc(5.0)
    Array(1.5374597e-12, dtype=float32, weak_type=True)
    """
    ...


@ufunc(error_function.erf_inv, promoted_inexact)
def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function, for elements from -1 to 1; NaN elsewhere.

    >>> erfinv(0.5)
    Array(0.47693628, dtype=float32, weak_type=True)
    """
    ...


def erfcx_formula(x: Any) -> Any:
    """`exp(x ** 2) * erfc(x)` of real x: Shepherd and Laframboise (1981), doi.org/10.1090/S0025-5718-1981-0595058-X."""
    size = abs(x)
    scaled = horner(1 - 7.5 / (size + 3.75), ERFCX) / (1 + 2 * size)
    below = min(x, 0.0)
    return where(x < 0, 2 * _exp_square(below) - scaled, scaled)


def _exp_square(x: Any) -> Any:
    """`exp(x ** 2)`, with the rounding of the square made good."""
    high = convert(floor(x * 256), aval_of(x).dtype) / 256
    return exp(high * high) * exp((x - high) * (x + high))


_erfcx = special(lambda x, out: 2 * x * out - _SLOPE)(erfcx_formula)


def erfcx(x: ArrayLike) -> Array:
    """`exp(x ** 2) * erfc(x)`, which does not underflow; complex for complex elements.

    >>> erfcx(10.0)
    Array(0.05614099, dtype=float32, weak_type=True)
    """
    (array,) = promoted_inexact("erfcx", x)
    return wofz(1j * array) if kind_of(aval_of(array).dtype) in COMPLEX else _erfcx(array)


@special(lambda x, out: 1 - 2 * x * out)
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral of each element: `exp(-x ** 2)` times the integral of `exp(t ** 2)` from 0 to x.

    >>> dawsn(1.0)
    Array(0.5380795, dtype=float32, weak_type=True)
    """
    square = x * x
    near = x * horner(min(square, 16.0) / 8 - 1, DAWSON) / (1 + 2 * square)
    outer = max(abs(x), 4.0)
    far = horner(32 / (outer * outer) - 1, DAWSON_FAR) / (2 * where(abs(x) > 4, x, 1.0))
    return where(abs(x) > 4, far, near)


def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function of each element, `exp(-z ** 2) * erfc(-1j * z)`; complex also for real ones.

    The trapezoidal rule of Al Azah and Chandler-Wilde, "Computation of the complex error function using modified
    trapezoidal rules" (2021): 11 terms, 15 digits.

    >>> wofz(1.0)
    Array(0.36787948+0.60715777j, dtype=complex64)
    """
    (array,) = promoted_inexact("wofz", z)
    return _wofz(array)


@ufunc(lambda z: _faddeeva(z), promoted_inexact)
def _wofz(z: Any) -> Any: ...
