"""Sums of products whose parts may cancel, overflow or underflow: determinants of small matrices, products of pivots.

A number is a fraction times a power of two, whose exponent is an integer: no product leaves the range before the last
step. Fractions of 64-bit floats are two halves, products of which are exact, so that what cancels leaves what is right.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import aval_of
from xlamini.numpy import reductions
from xlamini.numpy.rounding import frexp, times_power_of_two
from xlamini.primitives import abs, clamp, convert, full, imag, real, where
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.operators import equal, less
from xlamini.primitives.elementwise.arithmetic import max as maximum
from xlamini.primitives.elementwise.complex import complex
from xlamini.primitives.forms.cpu.math.floats import halves

_NONE = -(2**20)
"""The exponent of 0, below any other."""

_LARGEST = {4: 250, 8: 2040}
"""Exponents beyond which any number is 0 or infinite, and which are the sum of two that floats have, by their bytes."""


class Scaled(NamedTuple):
    """Real numbers `fraction * 2**exponent`."""

    fraction: Any
    exponent: Any


Number = tuple[Scaled, ...]
"""The real and the imaginary part, or the one part of a real number."""


def scaled(x: Any) -> Number:
    """The parts of numbers, each with its exponent."""
    return tuple(_normal(part) for part in ((real(x), imag(x)) if is_complex(x) else (x,)))


def sum_of_products(terms: Sequence[tuple[int, Number, Number]]) -> Number:
    """The sum of `sign * x * y`."""
    if len(terms[0][1]) == 1:
        return (_of_parts([(sign, x, y) for sign, (x,), (y,) in terms]),)
    straight = [(s, *pair) for sign, x, y in terms for s, pair in ((sign, (x[0], y[0])), (-sign, (x[1], y[1])))]
    crossed = [(sign, *pair) for sign, x, y in terms for pair in ((x[0], y[1]), (x[1], y[0]))]
    return _of_parts(straight), _of_parts(crossed)


def rounded(x: Number) -> Any:
    """Numbers as floats."""
    parts = [_grown(*part) for part in x]
    return complex(*parts) if len(parts) > 1 else parts[0]


def product(x: Any) -> Any:
    """The product of numbers over the last axis, which is out of range only if the result is.

    A product of fractions from 1/2 to 1 would underflow where there are many; these are from 0.7 to 1.4.
    """
    parts = (real(x), imag(x)) if is_complex(x) else (x,)
    fraction, exponent = frexp(maximum(*map(abs, parts)) if len(parts) > 1 else x)
    exponent = exponent - convert(less(abs(fraction), 0.5**0.5), exponent.dtype)
    fractions = [times_power_of_two(part, -exponent) for part in parts]
    found = reductions.prod(complex(*fractions) if len(parts) > 1 else fractions[0], -1)
    whole = reductions.sum(exponent, -1)
    if len(parts) > 1:
        return complex(_grown(real(found), whole), _grown(imag(found), whole))
    return _grown(found, whole)


# --- helpers


def _normal(x: Any, exponent: Any = 0) -> Scaled:
    fraction, own = frexp(x)
    return Scaled(fraction, where(equal(fraction, 0), full(aval_of(own), _NONE), own + exponent))


def _of_parts(terms: Sequence[tuple[int, Scaled, Scaled]]) -> Scaled:
    exponents = [x.exponent + y.exponent for _, x, y in terms]
    largest = exponents[0]
    for exponent in exponents[1:]:
        largest = maximum(largest, exponent)
    above: Any = 0
    below: Any = 0
    for (sign, x, y), exponent in zip(terms, exponents, strict=True):
        (a, b), (c, d) = halves(x.fraction), halves(y.fraction)
        less_than_largest = maximum(exponent - largest, -_LARGEST[8])
        above = above + sign * times_power_of_two(a * c, less_than_largest)
        below = below + sign * times_power_of_two(a * d + b * c + b * d, less_than_largest)
    # Halves of infinity are no numbers.
    return _normal(where(less(abs(above), np.inf), above + below, above), largest)


def _grown(x: Any, exponent: Any) -> Any:
    """`x * 2**exponent`, where it may be out of range."""
    largest = _LARGEST[aval_of(x).dtype.itemsize]
    return times_power_of_two(x, clamp(-largest, exponent, largest))
