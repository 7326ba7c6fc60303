"""Elementwise trigonometric and hyperbolic functions under NumPy's names; integers become floats."""
from __future__ import annotations

import math
from typing import Any

from xlamini.numpy.ufuncs.declaration import for_kinds, ufunc
from xlamini.primitives import FLOAT, abs, eq, hyperbolic, max, min, promoted_inexact, sqrt, trigonometric, where
from xlamini.primitives.operators import bitwise_or
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
    """Cosine of each element, in radians."""
    ...


@ufunc(trigonometric.tan, promoted_inexact)
def tan(x: ArrayLike, /) -> Array:
    """Tangent of each element, in radians."""
    ...


@ufunc(trigonometric.asin, promoted_inexact)
def arcsin(x: ArrayLike, /) -> Array:
    """The angle in [-pi/2, pi/2] of which each element is the sine; NaN outside [-1, 1]."""
    ...


@ufunc(trigonometric.acos, promoted_inexact)
def arccos(x: ArrayLike, /) -> Array:
    """The angle in [0, pi] of which each element is the cosine; NaN outside [-1, 1]."""
    ...


@ufunc(trigonometric.atan, promoted_inexact)
def arctan(x: ArrayLike, /) -> Array:
    """The angle in (-pi/2, pi/2) of which each element is the tangent."""
    ...


@ufunc(trigonometric.atan2, for_kinds(FLOAT, promoted_inexact))
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of each point (x2, x1), in [-pi, pi]; TypeError for complex numbers."""
    ...


@ufunc(hyperbolic.sinh, promoted_inexact)
def sinh(x: ArrayLike, /) -> Array:
    """Hyperbolic sine of each element."""
    ...


@ufunc(hyperbolic.cosh, promoted_inexact)
def cosh(x: ArrayLike, /) -> Array:
    """Hyperbolic cosine of each element."""
    ...


@ufunc(hyperbolic.tanh, promoted_inexact)
def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent of each element."""
    ...


@ufunc(hyperbolic.asinh, promoted_inexact)
def arcsinh(x: ArrayLike, /) -> Array:
    """The number of which each element is the hyperbolic sine."""
    ...


@ufunc(hyperbolic.acosh, promoted_inexact)
def arccosh(x: ArrayLike, /) -> Array:
    """The positive number of which each element is the hyperbolic cosine; NaN below 1."""
    ...


@ufunc(hyperbolic.atanh, promoted_inexact)
def arctanh(x: ArrayLike, /) -> Array:
    """The number of which each element is the hyperbolic tangent; NaN outside [-1, 1]."""
    ...


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh


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
    squared = angle * angle
    # Near 0 nothing can be divided; these terms carry the derivatives there up to the fifth.
    series = 1 - squared * (1 / 6 - squared / 120)
    at_zero = eq(x, 0)
    safe = where(at_zero, 1, angle)
    return where(at_zero, series, trigonometric.sin(safe) / safe)


@ufunc(_sinc, promoted_inexact)
def sinc(x: ArrayLike, /) -> Array:
    """`sin(pi x) / (pi x)` of each element, and 1 at 0."""
    ...


@ufunc(lambda x: x * (math.pi / 180), promoted_inexact)
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians."""
    ...


@ufunc(lambda x: x * (180 / math.pi), promoted_inexact)
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees."""
    ...


radians, degrees = deg2rad, rad2deg
