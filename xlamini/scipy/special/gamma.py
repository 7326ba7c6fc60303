"""The gamma function, its logarithm and derivatives, the incomplete ones, and Pochhammer's symbol."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import aval_of, issubdtype
from xlamini.numpy.arguments import as_count
from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import (
    COMPLEX,
    FLOAT,
    bitwise_and,
    convert,
    eq,
    exp,
    floor,
    full,
    kind_of,
    log,
    log1p,
    ne,
    promoted_inexact,
    sign,
    stop_gradient,
    where,
)
from xlamini.primitives.elementwise import complex as complex_ops
from xlamini.primitives.elementwise.special import gamma as primitives
from xlamini.primitives.elementwise.special.formula import horner
from xlamini.primitives.elementwise.special.incomplete_gamma_derivative import igamma, igammac
from xlamini.runtime import Array
from xlamini.scipy.special.declaration import special
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@ufunc(primitives.lgamma, promoted_inexact)
def gammaln(x: ArrayLike) -> Array:
    """The logarithm of the magnitude of the gamma function of each element.

    >>> gammaln(5.0)
    Array(3.1780539, dtype=float32, weak_type=True)
    """
    ...


@ufunc(primitives.digamma, promoted_inexact)
def digamma(x: ArrayLike) -> Array:
    """The derivative of `gammaln` at each element.

    >>> digamma(2.0)
    Array(0.4227844, dtype=float32, weak_type=True)
    """
    ...


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of `digamma`; n is an integer or an array of integers, else ValueError.

    >>> polygamma(1, 2.0)
    Array(0.64493406, dtype=float32, weak_type=True)
    """
    if not issubdtype(aval_of(n).dtype, np.integer):
        raise ValueError(f"polygamma: n must be of an integer dtype, got {aval_of(n).dtype}; convert it with .astype")
    return _polygamma(n, x)


def _derivative_of_digamma(n: Any, x: Any) -> Any:
    n = stop_gradient(n)
    order = where(eq(n, 0), 1.0, n)
    higher = where(eq(order, 1), primitives.trigamma(x), primitives.polygamma(order, x))
    return where(eq(n, 0), primitives.digamma(x), where(eq(x, math.inf), 0.0, higher))


@ufunc(_derivative_of_digamma, promoted_inexact)
def _polygamma(n: ArrayLike, x: ArrayLike) -> Array: ...


@special()
def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function of each element, 1.0 or -1.0; NaN at its poles below 0.

    >>> gammasgn(-0.5)
    Array(-1., dtype=float32)
    """
    return sign_of_gamma(x)


def sign_of_gamma(x: Any) -> Any:
    """1.0 or -1.0; NaN at the poles below 0."""
    whole = floor(x)
    odd = ne(whole - 2 * floor(whole / 2), 0)
    one = full(aval_of(x), 1.0)
    below = where(eq(x, whole), math.nan, where(odd, -one, one))
    at_zero = sign(1 / where(eq(x, 0), x, 1.0))
    return where(x < 0, below, where(eq(x, 0), at_zero, where(eq(x, x), one, math.nan)))


@special(accepts=FLOAT | COMPLEX)
def gamma(x: ArrayLike) -> Array:
    """The gamma function of each element: `factorial(x - 1)`; NaN at its poles below 0.

    >>> gamma(0.5)
    Array(1.7724538, dtype=float32)
    """
    return _gamma(x)


def _gamma(x: Any) -> Any:
    if kind_of(aval_of(x).dtype) in COMPLEX:
        real, imaginary = complex_ops.real(x), complex_ops.imag(x)
        pole = bitwise_and(eq(imaginary, 0), bitwise_and(real <= 0, eq(real, floor(real))))
        return where(pole, math.nan, exp(_complex_loggamma(x)))
    return sign_of_gamma(stop_gradient(x)) * exp(primitives.lgamma(x))


@ufunc(lambda x: _loggamma(x), promoted_inexact)
def loggamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function: of complex elements the branch without jumps but on the negative real axis.

    NaN for negative real elements; `gammaln` has the magnitude's logarithm.

    >>> loggamma(4.0)
    Array(1.7917595, dtype=float32, weak_type=True)
    """
    ...


def _loggamma(z: Any) -> Any:
    if kind_of(aval_of(z).dtype) in COMPLEX:
        return _complex_loggamma(z)
    return where(z < 0, math.nan, primitives.lgamma(z))


_SHIFT = 8
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


def _complex_loggamma(z: Any) -> Any:
    """DLMF 5.11.1 after steps to the right, and 5.5.3 for the left half plane."""
    left = complex_ops.real(z) < 0.5
    right = where(left, 1 - z, z)
    product = sum((log(right + k) for k in range(1, _SHIFT)), log(right))
    far = right + _SHIFT
    series = (far - 0.5) * log(far) - far + 0.5 * math.log(2 * math.pi) + horner(1 / (far * far), _STIRLING) / far
    out = series - product
    above = complex_ops.imag(z) >= 0
    upper = where(above, z, complex_ops.conj(z))
    turn = exp(2j * math.pi * where(left, upper, 1j))
    log_sine = 1j * math.pi * (0.5 - upper) - math.log(2) + log1p(-turn)
    mirrored = math.log(math.pi) - where(above, log_sine, complex_ops.conj(log_sine)) - out
    return where(left, mirrored, out)


@ufunc(igamma, promoted_inexact)
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function of each pair of elements, for a > 0 and x >= 0; else NaN.

    >>> gammainc(1.0, 1.0)
    Array(0.6321205, dtype=float32, weak_type=True)
    """
    ...


@ufunc(igammac, promoted_inexact)
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """`1 - gammainc(a, x)` of each pair of elements, precise where it is small.

    >>> gammaincc(1.0, 10.0)
    Array(4.5399935e-05, dtype=float32, weak_type=True)
    """
    ...


def multigammaln(a: ArrayLike, d: Any) -> Array:
    """The logarithm of the multivariate gamma function of dimension d, a whole number, for a > (d - 1) / 2.

    >>> multigammaln(3.0, 2)
    Array(1.5501952, dtype=float32)
    """
    return _multigammaln(a, d=as_count("multigammaln", "d", int(d) if hasattr(d, "shape") else d))


@composite(static=("d",))
def _multigammaln(a: Any, *, d: int) -> Any:
    (array,) = promoted_inexact("multigammaln", a)
    total = 0 * array + d * (d - 1) / 4 * math.log(math.pi)
    for k in range(d):
        total = total + primitives.lgamma(array - k / 2)
    return convert(total, aval_of(array).dtype)


def _poch_slope(z: Any, m: Any, out: Any) -> Any:
    both = bitwise_and(is_pole(z), is_pole(z + m))
    top, base = where(both, 1 - z - m, z + m), where(both, 1 - z, z)  # the cotangents of the reflections are equal
    return out * (primitives.digamma(top) - primitives.digamma(base))


@special(_poch_slope, lambda z, m, out: out * primitives.digamma(z + m))
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol, `gamma(z + m) / gamma(z)`, of each pair of elements.

    >>> poch(2.0, 3.0)
    Array(24., dtype=float32)
    """
    low, high = is_pole(z), is_pole(z + m)
    both = bitwise_and(low, high)  # then the poles cancel: (-1) ** m * gamma(1 - z) / gamma(1 - z - m)
    top, base = where(both, 1 - z, z + m), where(both, 1 - z - m, z)
    size = exp(primitives.lgamma(top) - primitives.lgamma(base))
    signs = where(both, 1 - 2 * abs(m - 2 * floor(m / 2)), sign_of_gamma(z) * sign_of_gamma(z + m))
    one_pole = where(low, 0.0, where(high, math.inf, signs * size))
    return where(eq(m, 0), 1.0, where(both, signs * size, one_pole))


def is_whole(x: Any) -> Any:
    """A mask of whole numbers."""
    return eq(x, floor(x))


def is_pole(x: Any) -> Any:
    """A mask of 0 and the negative whole numbers."""
    return bitwise_and(x <= 0, is_whole(x))
