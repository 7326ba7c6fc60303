"""The elementary functions of complex numbers, by their parts: see by_parts.py.

Where the sign of a zero chooses the side of a branch cut, they follow C99's annex G and NumPy.
"""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.elementwise.arithmetic import abs, max, min
from xlamini.primitives.elementwise.bitwise import bitwise_or
from xlamini.primitives.elementwise.by_parts import corrected, of_parts
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.exponential import exp, expm1, log, log1p
from xlamini.primitives.elementwise.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from xlamini.primitives.elementwise.power import rsqrt, sqrt
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.elementwise.trigonometric import acos, asin, atan, cos, sin, tan
from xlamini.primitives.forms.cpu.math.floats import OWN_BELOW, bits_of, from_bits, sign_of, with_sign

# --- sine and cosine, circular and hyperbolic


@of_parts(sin)
def _(x: Any, y: Any) -> tuple[Any, Any]:
    return times_hyperbolic(sin(x), cos(x), y)


@of_parts(cos)
def _(x: Any, y: Any) -> tuple[Any, Any]:
    return times_hyperbolic(cos(x), -sin(x), y)


@of_parts(sinh)
def _(x: Any, y: Any) -> tuple[Any, Any]:
    return times_hyperbolic(sin(y), cos(y), x)[::-1]


@of_parts(cosh)
def _(x: Any, y: Any) -> tuple[Any, Any]:
    return times_hyperbolic(cos(y), sin(y), x)


@corrected(tan)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    return where(eq(x, 0), x, real), _with_sign_of(imag, y)


@corrected(tanh)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    return _with_sign_of(real, x), where(eq(y, 0), y, imag)


_LARGE = 20.0
"""From here on, the hyperbolic sine and cosine are half the exponential, up to rounding."""


def times_hyperbolic(first: Any, second: Any, y: Any) -> tuple[Any, Any]:
    """`first * cosh(y)` and `second * sinh(y)`; overflows only where the product does, and 0 times infinity is 0."""
    size = abs(y)
    beyond = expm1(size)
    whole = beyond + 1
    cosine, sine = 0.5 * (whole + 1 / whole), 0.5 * (beyond + beyond / whole)
    signed = with_sign(where(size < OWN_BELOW[aval_of(y).dtype], size, sine), sign_of(y))
    root = exp(0.5 * size)
    small = size < _LARGE

    def product(factor: Any, function: Any, sign: Any) -> Any:
        large = where(eq(factor, 0), factor, factor * root * (0.5 * root))
        return where(small, factor * function, with_sign(large, sign))

    return product(first, cosine, 0), product(second, signed, sign_of(y))


# --- logarithms


@corrected(log1p)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    """Near -1 the square of the distance underflows."""
    near = abs(x + 1) + abs(y) < 0.125
    return where(near, log(_size(x + 1, y)), real), imag


@corrected(atanh)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    """Near 1 and -1 the square of the distance underflows."""
    return _with_sign_of(_beside_pole(abs(x), abs(y), abs(real)), x), _with_sign_of(imag, y)


@corrected(atan)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    return _with_sign_of(real, x), _with_sign_of(_beside_pole(abs(y), abs(x), abs(imag)), y)


def _beside_pole(x: Any, y: Any, found: Any) -> Any:
    """The real part of `atanh(x + iy)`: half the logarithm of the ratio of the distances from -1 and 1."""
    near = abs(x - 1) + y < 0.125
    return where(near, 0.5 * log(_size(x + 1, y) / _size(x - 1, y)), found)


def _size(x: Any, y: Any) -> Any:
    """`abs(x + iy)`, without its square."""
    longer, shorter = max(abs(x), abs(y)), min(abs(x), abs(y))
    ratio = shorter / where(eq(longer, 0), 1.0, longer)
    return longer * sqrt(1 + ratio * ratio)


# --- sides of branch cuts


@corrected(sqrt)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    return real, _with_sign_of(imag, y)


@corrected(rsqrt, acos)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    return real, _with_sign_of(imag, -y)


@corrected(acosh)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    return abs(real), _with_sign_of(imag, y)


@corrected(asin, asinh)
def _(x: Any, y: Any, real: Any, imag: Any) -> tuple[Any, Any]:
    return _with_sign_of(real, x), _with_sign_of(imag, y)


def _with_sign_of(x: Any, y: Any) -> Any:
    return from_bits(bitwise_or(bits_of(abs(x)), sign_of(y)))
