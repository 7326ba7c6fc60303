"""Error functions of real and complex arguments, plain and scaled."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import (
    COMPLEX,
    abs,
    bitwise_and,
    check_operands,
    convert,
    exp,
    floor,
    kind_of,
    max,
    min,
    promoted_inexact,
    where,
)
from xlamini.primitives.elementwise import complex as complex_ops
from xlamini.primitives.elementwise.special import error_function
from xlamini.primitives.elementwise.special.erfc_inv import erfc_inv
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.scipy.special.fit_terms import fitted
from xlamini.scipy.special.fits import DAWSON, DAWSON_FAR, ERFCX
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

    >>> erfc(3.0)
    Array(2.2090497e-05, dtype=float32, weak_type=True)
    """
    ...


@ufunc(error_function.erf_inv, promoted_inexact)
def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function, for elements from -1 to 1; NaN for others.

    >>> erfinv(0.5)
    Array(0.47693628, dtype=float32, weak_type=True)
    """
    ...


@ufunc(erfc_inv, promoted_inexact)
def erfcinv(y: ArrayLike) -> Array:
    """The inverse of the complementary error function, for elements from 0 to 2; NaN for others.

    It is precise also for small elements, where `erfinv(1 - y)` is not.

    >>> erfcinv(0.5)
    Array(0.47693628, dtype=float32, weak_type=True)
    """
    ...


def erfcx_formula(x: Any) -> Any:
    """`exp(x ** 2) * erfc(x)` of real x: Shepherd and Laframboise (1981), doi.org/10.1090/S0025-5718-1981-0595058-X."""
    size = abs(x)
    scaled = fitted(1 - 7.5 / (size + 3.75), ERFCX) / (1 + 2 * size)
    below = max(min(x, 0.0), -30.0)
    return where(x < 0, 2 * _exp_square(below) - scaled, scaled)


def _exp_square(x: Any) -> Any:
    """`exp(x ** 2)`, with the rounding of the square made good."""
    high = floor(x * 256) / 256
    return exp(high * high) * exp((x - high) * (x + high))


_erfcx = special(lambda x, out: 2 * x * out - _SLOPE)(erfcx_formula)


def erfcx(x: ArrayLike) -> Array:
    """`exp(x ** 2) * erfc(x)`, which does not underflow; complex for complex elements.

    >>> erfcx(10.0)
    Array(0.05614099, dtype=float32)
    """
    check_operands("erfcx", (x,))
    return wofz(1j * x) if kind_of(aval_of(x).dtype) in COMPLEX else _erfcx(x)


@special(lambda x, out: 1 - 2 * x * out)
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral of each element: `exp(-x ** 2)` times the integral of `exp(t ** 2)` from 0 to x.

    >>> dawsn(1.0)
    Array(0.5380795, dtype=float32)
    """
    square = x * x
    near = x * fitted(min(square, 16.0) / 8 - 1, DAWSON) / (1 + 2 * square)
    outer = max(abs(x), 4.0)
    far = fitted(32 / (outer * outer) - 1, DAWSON_FAR) / (2 * where(abs(x) > 4, x, 1.0))
    return where(abs(x) > 4, far, near)


@ufunc(lambda z: _wofz(_as_complex(z)), promoted_inexact)
def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function of each element, `exp(-z ** 2) * erfc(-1j * z)`; complex also for real ones.

    The trapezoidal rule of Al Azah and Chandler-Wilde, "Computation of the complex error function using modified
    trapezoidal rules" (2021): 11 terms, 15 digits.

    >>> wofz(1.0)
    Array(0.36787945+0.60715777j, dtype=complex64)
    """
    ...


def _as_complex(z: Any) -> Any:
    wide = np.complex128 if aval_of(z).dtype.name in ("float64", "complex128") else np.complex64
    return convert(z, np.dtype(wide))


@special(lambda z, out: -2 * z * out + 1j * _SLOPE, accepts=COMPLEX)
def _wofz(z: Any) -> Any:
    x, y = complex_ops.real(z), complex_ops.imag(z)
    upper = where(y >= 0, z, -z)
    first = _first_quadrant(abs(x), abs(y))
    out = where(complex_ops.real(upper) >= 0, first, complex_ops.conj(first))
    return where(y >= 0, out, 2 * exp(-z * z) - out)


_TERMS = 11
_STEP = math.sqrt(math.pi / (_TERMS + 1))


def _first_quadrant(x: Any, y: Any) -> Any:
    z = complex_ops.complex(x, y)
    square, turned = z * z, 1j / math.pi * z
    midpoints = 2 * _STEP * turned * _sum(square, [(k + 0.5) * _STEP for k in range(_TERMS + 1)])
    nodes = 2 * _STEP * turned * _sum(square, [k * _STEP for k in range(1, _TERMS + 1)]) + _STEP * 1j / (math.pi * z)
    # The quadrature's residue at the pole of the integrand; z decides between nodes and midpoints, to avoid the pole.
    phase = exp(2j * math.pi / _STEP * z)
    pole = 2 * exp(-square) * phase
    part = x / _STEP - floor(x / _STEP)
    between = bitwise_and(y < x, abs(part - 0.5) <= 0.25)
    out = where(between, nodes + pole / (phase - 1), midpoints + pole / (phase + 1))
    out = where(y >= max(x, math.pi / _STEP), midpoints, out)
    return where(max(x, y) > 1e8, 1j / (math.sqrt(math.pi) * z), out)


def _sum(square: Any, nodes: Sequence[float]) -> Any:
    total: Any = 0.0
    for t in nodes:
        total = total + math.exp(-t * t) / (square - t * t)
    return total
