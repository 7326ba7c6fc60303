"""Integrals of sines and cosines: sici and fresnel."""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives import abs, bitwise_and, eq, floor, log, max, min, sign, where
from xlamini.primitives.elementwise.special.formula import horner
from xlamini.primitives.elementwise.trigonometric import cos, sin
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.scipy.special.fit_terms import fitted
from xlamini.scipy.special.fits import FRESNEL_F, FRESNEL_G, SICI_F, SICI_G
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_EULER = 0.5772156649015329


@composite()
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The integral of `sin(t) / t` from 0 to x, and that of `cos(t) / t`, from infinity, of x's magnitude.

    >>> sici(1.0)
    (Array(0.94608307, dtype=float32), Array(0.33740392, dtype=float32))
    """
    return _sine_integral(x), _cosine_integral(x)


def _sinc(x: Any, out: Any) -> Any:
    zero = eq(x, 0)
    return where(zero, 1.0, sin(x) / where(zero, 1.0, x))


@special(_sinc)
def _sine_integral(x: Any) -> Any:
    size = abs(x)
    square = min(size, 4.0) * min(size, 4.0)
    series = min(size, 4.0) * horner(square, [_over_factorial(2 * k + 1) for k in reversed(range(15))])
    f, g, outer = _auxiliary(size)
    far = math.pi / 2 - f * cos(outer) - g * sin(outer)
    return sign(x) * where(size <= 4, series, where(eq(size, math.inf), math.pi / 2, far))


@special(lambda x, out: cos(x) / x)
def _cosine_integral(x: Any) -> Any:
    size = abs(x)
    square = min(size, 4.0) * min(size, 4.0)
    series = _EULER + log(size) + square * horner(square, [_over_factorial(2 * k) for k in range(15, 0, -1)])
    f, g, outer = _auxiliary(size)
    far = where(eq(size, math.inf), 0.0, f * sin(outer) - g * cos(outer))
    return where(eq(x, -math.inf), math.nan, where(size > 4, far, series))


def _over_factorial(n: int) -> float:
    """The coefficient of x ** n in the integral of a sine's or cosine's series over x."""
    return (-1) ** (n // 2) / (n * math.factorial(n))


def _auxiliary(size: Any) -> tuple[Any, Any, Any]:
    """f and g of DLMF 6.2.17, and the argument, where it is beyond 4."""
    outer = where(eq(size, math.inf), 4.0, max(size, 4.0))
    t = 8 / outer - 1
    return fitted(t, SICI_F) / outer, fitted(t, SICI_G) / (outer * outer), outer


@composite()
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals, of `sin(pi * t ** 2 / 2)` and of `cos(pi * t ** 2 / 2)` from 0 to x, for real x.

    >>> fresnel(1.0)
    (Array(0.43825915, dtype=float32), Array(0.7798934, dtype=float32))
    """
    return _fresnel_sine(x), _fresnel_cosine(x)


@special(lambda x, out: sin(_phase(x)))
def _fresnel_sine(x: Any) -> Any:
    f, g, s, c = _fresnel_parts(x)
    inner = min(abs(x), 1.6)
    square = inner * inner
    terms = [_fresnel_term(2 * k + 1) for k in reversed(range(16))]
    near = square * inner * horner(square * square, terms)
    return sign(x) * where(abs(x) <= 1.6, near, 0.5 - f * c - g * s)


@special(lambda x, out: cos(_phase(x)))
def _fresnel_cosine(x: Any) -> Any:
    f, g, s, c = _fresnel_parts(x)
    inner = min(abs(x), 1.6)
    square = inner * inner
    terms = [_fresnel_term(2 * k) for k in reversed(range(16))]
    near = inner * horner(square * square, terms)
    return sign(x) * where(abs(x) <= 1.6, near, 0.5 + f * s - g * c)


def _fresnel_term(n: int) -> float:
    """The coefficient of x ** (2 * n + 1) (DLMF 7.6.4, 7.6.6)."""
    return (-1) ** (n // 2) * (math.pi / 2) ** n / (math.factorial(n) * (2 * n + 1))


def _fresnel_parts(x: Any) -> tuple[Any, Any, Any, Any]:
    """f and g of DLMF 7.2.10 and 7.2.11 beyond 1.6, and the sine and cosine of the phase."""
    outer = max(abs(x), 1.6)
    t = 5.12 / (outer * outer) - 1
    f = fitted(t, FRESNEL_F) / (math.pi * outer)
    g = fitted(t, FRESNEL_G) / (math.pi**2 * outer) / (outer * outer)
    phase = _phase(where(eq(outer, math.inf), 1.6, outer))
    return f, g, sin(phase), cos(phase)


def _phase(x: Any) -> Any:
    """`pi * x ** 2 / 2` modulo 2 pi, reduced before the square loses its digits; large floats are multiples of 4."""
    size = abs(x)
    x = where(bitwise_and(size >= 2.0**60, size < math.inf), 0.0, x)
    whole = 2 * floor(x / 2 + 0.5)
    rest = x - whole
    part = 2 * whole * rest + rest * rest
    return math.pi / 2 * (part - 4 * floor(part / 4))
