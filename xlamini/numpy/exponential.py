"""Elementwise exponentials, logarithms and roots under NumPy's names; integers become floats."""
from __future__ import annotations

import functools
import math
from typing import Any

from xlamini.numpy.ufuncs.declaration import ufunc
from xlamini.primitives import is_complex, promoted_inexact, where
from xlamini.primitives.base import operators
from xlamini.primitives.elementwise import complex as parts, exponential, power, rounding
from xlamini.primitives.elementwise.logaddexp import logaddexp as _logaddexp
from xlamini.runtime import Array
from xlamini.typing import ArrayLike


@ufunc(exponential.exp, promoted_inexact)
def exp(x: ArrayLike, /) -> Array:
    """Exponential of each element: `e ** x`.

    >>> jnp.exp(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    ...


@ufunc(exponential.exp2, promoted_inexact)
def exp2(x: ArrayLike, /) -> Array:
    """2 to the power of each element: `2 ** x`.

    >>> jnp.exp2(3.0)
    Array(8., dtype=float32, weak_type=True)
    """
    ...


@ufunc(exponential.expm1, promoted_inexact)
def expm1(x: ArrayLike, /) -> Array:
    """`exp(x) - 1` of each element, precise for small x.

    >>> jnp.expm1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    ...


@ufunc(exponential.log, promoted_inexact)
def log(x: ArrayLike, /) -> Array:
    """Natural logarithm of each element; NaN for negative reals.

    >>> jnp.log(jnp.array([1.0, 0.0]))
    Array([  0., -inf], dtype=float32)
    """
    ...


@ufunc(exponential.log1p, promoted_inexact)
def log1p(x: ArrayLike, /) -> Array:
    """`log(1 + x)` of each element, precise for small x.

    >>> jnp.log1p(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    ...


def _log_to_base(base: float, x: Any) -> Any:
    """The parts of a complex logarithm are divided each, as they may be infinite."""
    whole = exponential.log.bind(x)
    if is_complex(x):
        return parts.complex(parts.real(whole) / math.log(base), parts.imag(whole) / math.log(base))
    return whole / math.log(base) if base == 2 else whole * (1 / math.log(base))


@ufunc(functools.partial(_log_to_base, 2), promoted_inexact)
def log2(x: ArrayLike, /) -> Array:
    """Logarithm of each element to base 2.

    >>> jnp.log2(8.0)
    Array(3., dtype=float32, weak_type=True)
    """
    ...


@ufunc(functools.partial(_log_to_base, 10), promoted_inexact)
def log10(x: ArrayLike, /) -> Array:
    """Logarithm of each element to base 10.

    >>> jnp.log10(jnp.array([1.0, 0.1]))
    Array([ 0., -1.], dtype=float32)
    """
    ...


@ufunc(power.sqrt, promoted_inexact)
def sqrt(x: ArrayLike, /) -> Array:
    """Square root of each element; NaN for negative reals.

    >>> jnp.sqrt(jnp.array([4.0, 9.0]))
    Array([2., 3.], dtype=float32)
    """
    ...


@ufunc(power.cbrt, promoted_inexact)
def cbrt(x: ArrayLike, /) -> Array:
    """Cube root of each element; negative for negative ones.

    >>> jnp.cbrt(jnp.array([8.0, -27.0]))
    Array([ 2., -3.], dtype=float32)
    """
    ...


def _log_of_sum(x: Any, y: Any) -> Any:
    if not is_complex(x):
        return _logaddexp(x, y)
    first = operators.greater_equal(parts.real(x), parts.real(y))
    larger, smaller = where(first, x, y), where(first, y, x)
    gap = smaller - larger
    total = where(operators.equal(gap, gap), larger + exponential.log1p(exponential.exp(gap)), larger + smaller)
    angle = parts.imag(total)
    turns = rounding.round(angle * (0.5 / math.pi))
    return parts.complex(parts.real(total), angle - turns * (2 * math.pi))


@ufunc(_log_of_sum, promoted_inexact)
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`log(exp(x1) + exp(x2))` of each pair of elements, without overflow.

    Of complex numbers the imaginary part is that of the principal branch, from -pi to pi.

    >>> logaddexp(1000.0, 1000.0)
    Array(1000.6932, dtype=float32, weak_type=True)
    """
    ...


def _logaddexp2(x: Any, y: Any) -> Any:
    return _log_of_sum(x * math.log(2), y * math.log(2)) / math.log(2)


@ufunc(_logaddexp2, promoted_inexact)
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`log2(2 ** x1 + 2 ** x2)` of each pair of elements, without overflow.

    >>> jnp.logaddexp2(jnp.array([1000.0]), 1000.0)
    Array([1001.], dtype=float32)
    """
    ...
