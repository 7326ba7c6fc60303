"""Elementwise trigonometric and hyperbolic functions under NumPy's names; integers become floats."""
from __future__ import annotations

import functools
import math
from typing import Any, Final

from xlamini.numpy.ufuncs.declaration import for_kinds, ufunc
from xlamini.primitives import FLOAT, abs, eq, lt, max, min, promoted_inexact, sqrt, where
from xlamini.primitives.base.operators import bitwise_or
from xlamini.primitives.elementwise import hyperbolic, trigonometric
from xlamini.runtime import Array
from xlamini.typing import ArrayLike


@ufunc(trigonometric.sin, promoted_inexact)
def sin(x: ArrayLike, /) -> Array:
    """Sine of each element, in radians.

    >>> sin(0)
    Array(0., dtype=float32, weak_type=True)
    """
    ...


@ufunc(trigonometric.cos, promoted_inexact)
def cos(x: ArrayLike, /) -> Array:
    """Cosine of each element, in radians.

    >>> jnp.cos(0)
    Array(1., dtype=float32, weak_type=True)
    """
    ...


@ufunc(trigonometric.tan, promoted_inexact)
def tan(x: ArrayLike, /) -> Array:
    """Tangent of each element, in radians.

    >>> jnp.tan(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    ...


@ufunc(trigonometric.asin, promoted_inexact)
def arcsin(x: ArrayLike, /) -> Array:
    """The angle in [-pi/2, pi/2] of which each element is the sine; NaN outside [-1, 1].

    >>> jnp.arcsin(jnp.array([0.0, 2.0]))
    Array([ 0., nan], dtype=float32)
    """
    ...


@ufunc(trigonometric.acos, promoted_inexact)
def arccos(x: ArrayLike, /) -> Array:
    """The angle in [0, pi] of which each element is the cosine; NaN outside [-1, 1].

    >>> jnp.arccos(jnp.array([1.0, 2.0]))
    Array([ 0., nan], dtype=float32)
    """
    ...


@ufunc(trigonometric.atan, promoted_inexact)
def arctan(x: ArrayLike, /) -> Array:
    """The angle in (-pi/2, pi/2) of which each element is the tangent.

    >>> jnp.arctan(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    ...


@ufunc(trigonometric.atan2, for_kinds(FLOAT, promoted_inexact))
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of each point (x2, x1), in [-pi, pi]; TypeError for complex numbers.

    >>> jnp.arctan2(jnp.array([1.0, -1.0]), 1.0).round(3)
    Array([ 0.785, -0.785], dtype=float32)
    """
    ...


@ufunc(hyperbolic.sinh, promoted_inexact)
def sinh(x: ArrayLike, /) -> Array:
    """Hyperbolic sine of each element.

    >>> jnp.sinh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    ...


@ufunc(hyperbolic.cosh, promoted_inexact)
def cosh(x: ArrayLike, /) -> Array:
    """Hyperbolic cosine of each element.

    >>> jnp.cosh(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    ...


@ufunc(hyperbolic.tanh, promoted_inexact)
def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent of each element.

    >>> jnp.tanh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    ...


@ufunc(hyperbolic.asinh, promoted_inexact)
def arcsinh(x: ArrayLike, /) -> Array:
    """The number of which each element is the hyperbolic sine.

    >>> jnp.arcsinh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    ...


@ufunc(hyperbolic.acosh, promoted_inexact)
def arccosh(x: ArrayLike, /) -> Array:
    """The positive number of which each element is the hyperbolic cosine; NaN below 1.

    >>> jnp.arccosh(1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    ...


@ufunc(hyperbolic.atanh, promoted_inexact)
def arctanh(x: ArrayLike, /) -> Array:
    """The number of which each element is the hyperbolic tangent; NaN outside [-1, 1].

    >>> jnp.arctanh(jnp.array([0.0, 1.0]))
    Array([ 0., inf], dtype=float32)
    """
    ...


asin: Final = arcsin
acos: Final = arccos
atan: Final = arctan
atan2: Final = arctan2
asinh: Final = arcsinh
acosh: Final = arccosh
atanh: Final = arctanh


def _hypot(x: Any, y: Any) -> Any:
    x, y = abs(x), abs(y)
    longer, shorter = max(x, y), min(x, y)
    ratio = shorter / where(eq(longer, 0), 1, longer)
    length = where(eq(longer, 0), longer, longer * sqrt(1 + ratio * ratio))
    return where(bitwise_or(eq(x, math.inf), eq(y, math.inf)), math.inf, length)


@ufunc(_hypot, for_kinds(FLOAT, promoted_inexact))
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`sqrt(x1 ** 2 + x2 ** 2)` of each pair of elements, without overflow; TypeError for complex numbers.

    >>> hypot(3, 4)
    Array(5., dtype=float32, weak_type=True)
    """
    ...


def _sinc(x: Any) -> Any:
    angle = x * math.pi
    # The derivatives of the quotient cancel near 0, those of the series do not.
    near = lt(abs(angle), 1)
    squared = where(near, angle, 0) ** 2
    series = functools.reduce(lambda rest, k: 1 - squared / (2 * k * (2 * k + 1)) * rest, range(_TERMS, 0, -1), 1)
    safe = where(near, 1, angle)
    return where(near, series, trigonometric.sin(safe) / safe)


_TERMS = 9


@ufunc(_sinc, promoted_inexact)
def sinc(x: ArrayLike, /) -> Array:
    """`sin(pi x) / (pi x)` of each element, and 1 at 0.

    >>> jnp.sinc(jnp.array([0.0, 0.5])).round(3)
    Array([1.   , 0.637], dtype=float32)
    """
    ...


@ufunc(lambda x: x * (math.pi / 180), promoted_inexact)
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians.

    >>> round(float(jnp.deg2rad(180.0)), 3)
    3.142
    """
    ...


@ufunc(lambda x: x * (180 / math.pi), promoted_inexact)
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees.

    >>> jnp.rad2deg(jnp.pi)
    Array(180., dtype=float32, weak_type=True)
    """
    ...


radians: Final = deg2rad
degrees: Final = rad2deg
