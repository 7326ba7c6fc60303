"""Elementwise trigonometric functions, of angles in radians, and their inverses."""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.base.accuracy import Accuracy, Accurate
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, is_complex, kind_of
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.elementwise.arithmetic import abs, max
from xlamini.primitives.elementwise.bitwise import bitwise_or
from xlamini.primitives.elementwise.by_parts import ByParts
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL
from xlamini.primitives.elementwise.hyperbolic import logistic
from xlamini.primitives.elementwise.power import rsqrt, square
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math import formula


@elementwise(
    family=Accurate, hlo="stablehlo.sine", on_cpu=formula("circular.sine"),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def sin(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Sine, elementwise.

    >>> lax.sin(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@sin.derivative
def _(x: Any, *, out: Any) -> Any:
    return cos(x)


@elementwise(
    family=Accurate, hlo="stablehlo.cosine", on_cpu=formula("circular.cosine"),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def cos(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Cosine, elementwise.

    >>> lax.cos(0.0)
    Array(1., dtype=float32, weak_type=True)
    """


@cos.derivative
def _(x: Any, *, out: Any) -> Any:
    return -sin(x)


@elementwise(
    family=Accurate, hlo="stablehlo.tan", on_cpu=formula("circular.tangent"),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def tan(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Tangent, elementwise.

    >>> lax.tan(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@tan.derivative
def _(x: Any, *, out: Any) -> Any:
    if is_complex(x):  # out is near i or -i where the imaginary part is large
        return 4 * logistic(2j * x) * logistic(-2j * x)
    return 1 + square(out)


@elementwise(
    family=ByParts, hlo="chlo.asin", on_cpu=formula("arcsine.arcsine"),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def asin(x: Any) -> Any:
    """Inverse sine, elementwise, between -pi/2 and pi/2; NaN for reals outside [-1, 1].

    >>> lax.asin(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@asin.derivative
def _(x: Any, *, out: Any) -> Any:
    return _of_arcsine(x)


@elementwise(
    family=ByParts, hlo="chlo.acos", on_cpu=formula("arcsine.arccosine"),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def acos(x: Any) -> Any:
    """Inverse cosine, elementwise, between 0 and pi; NaN for reals outside [-1, 1].

    >>> lax.acos(1.0)
    Array(0., dtype=float32, weak_type=True)
    """


@acos.derivative
def _(x: Any, *, out: Any) -> Any:
    return -_of_arcsine(x)


def _of_arcsine(x: Any) -> Any:
    # One root of the product would overflow, and be on the wrong branch, for complex numbers.
    return rsqrt(1 - x) * rsqrt(1 + x) if is_complex(x) else rsqrt((1 - x) * (1 + x))


@elementwise(
    family=ByParts, hlo="chlo.atan", on_cpu=formula("arctangent.arctangent"),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def atan(x: Any) -> Any:
    """Inverse tangent, elementwise, between -pi/2 and pi/2.

    >>> lax.atan(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@atan.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 / ((1 + 1j * x) * (1 - 1j * x)) if is_complex(x) else 1 / (1 + square(x))


@elementwise(
    hlo="stablehlo.atan2", on_cpu=formula("arctangent.arctangent_of_point"),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x), elementwise, between -pi and pi: `atan(x / y)`, in the right quadrant.

    >>> atan2(1.0, -1.0)
    Array(2.3561945, dtype=float32, weak_type=True)
    """


def _over_square_length(along: Any, x: Any, y: Any) -> Any:
    """`along / (x^2 + y^2)`, whose squares stay in range; 0 far away, and at the origin, which has no derivative."""
    if kind_of(aval_of(x).dtype) is COMPLEX:
        return along / (square(x) + square(y))
    longer = max(abs(x), abs(y))
    flat = bitwise_or(eq(longer, 0), eq(longer, math.inf))
    unit = where(flat, 1, longer)
    # The choice also keeps XLA from dividing once, by the product of all.
    share = where(flat, 0, along / unit)
    return share / (where(flat, 1, square(x / unit) + square(y / unit)) * unit)


atan2.derivatives(
    lambda x, y, out: _over_square_length(y, x, y),
    lambda x, y, out: -_over_square_length(x, x, y),
)
