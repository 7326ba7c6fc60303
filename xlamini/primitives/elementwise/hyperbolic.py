"""Elementwise hyperbolic functions, their inverses, and the logistic function, `(1 + tanh(x / 2)) / 2`.

The derivatives of both tangents are one operation, `sech_squared`. It is computed from the argument, as nothing is left
of `1 - out**2` where `out` is rounded to 1; and it is one operation because no formula of one exponential keeps the
digits of its own derivative near 0.
"""
from __future__ import annotations

from typing import Any

from xlamini.core import aval_of
from xlamini.core.dtypes.limits import finfo
from xlamini.primitives.base.accuracy import Accuracy, Accurate
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, is_complex
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.base.promotion import accumulator, in_dtype
from xlamini.primitives.elementwise.arithmetic import abs
from xlamini.primitives.elementwise.by_parts import ByParts
from xlamini.primitives.elementwise.comparison import gt
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp
from xlamini.primitives.elementwise.power import rsqrt, square
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math import DOUBLE, formula


@elementwise(
    family=ByParts, hlo="chlo.sinh", on_cpu=formula("exponential.hyperbolic_sine", DOUBLE),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def sinh(x: Any) -> Any:
    """Hyperbolic sine, elementwise.

    >>> lax.sinh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@sinh.derivative
def _(x: Any, *, out: Any) -> Any:
    return cosh(x)


@elementwise(
    family=ByParts, hlo="chlo.cosh", on_cpu=formula("exponential.hyperbolic_cosine", DOUBLE),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def cosh(x: Any) -> Any:
    """Hyperbolic cosine, elementwise.

    >>> lax.cosh(0.0)
    Array(1., dtype=float32, weak_type=True)
    """


@cosh.derivative
def _(x: Any, *, out: Any) -> Any:
    return sinh(x)


@elementwise(family=Accurate, hlo="stablehlo.tanh", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def tanh(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Hyperbolic tangent, elementwise.

    >>> lax.tanh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@tanh.derivative
def _(x: Any, *, out: Any) -> Any:
    return 4 * logistic(2 * x) * logistic(-2 * x) if is_complex(x) else sech_squared(x)


@elementwise(family=Accurate, hlo="stablehlo.logistic", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def logistic(x: Any, *, accuracy: Accuracy = None) -> Any:
    """The logistic function, elementwise: `1 / (1 + e ** -x)`.

    >>> lax.logistic(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """


@logistic.derivative
def _(x: Any, *, out: Any) -> Any:
    return out * logistic(-x) if is_complex(x) else sech_squared(x / 2) / 4


@elementwise(accepts=FLOAT, flops=TRANSCENDENTAL)
def sech_squared(x: Any) -> Any:
    """`1 / cosh(x)**2`, elementwise: the derivative of the hyperbolic tangent."""


@sech_squared.formula
def _(x: Any) -> Any:
    """`(2 * v / (1 + v**2))**2`, with `v = exp(-abs(x))`: neither overflows, nor underflows before the result."""
    dtype = aval_of(x).dtype
    # The square is one of 2 * v, as XLA makes of exp(y) * exp(y) a second exponential, exp(y + y).
    double = 2 * exp(-abs(in_dtype(x, accumulator(dtype))))
    return in_dtype(square(double / (1 + 0.25 * double * double)), dtype)


@sech_squared.derivative
def _(x: Any, *, out: Any) -> Any:
    return -2 * tanh(x) * out


@elementwise(family=ByParts, hlo="chlo.asinh", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine, elementwise.

    >>> lax.asinh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@asinh.derivative
def _(x: Any, *, out: Any) -> Any:
    if is_complex(x):
        return rsqrt(1 + 1j * x) * rsqrt(1 - 1j * x)
    far = gt(abs(x), square_overflows(x))
    return where(far, 1 / abs(x), rsqrt(1 + square(where(far, 1, x))))


def square_overflows(x: Any) -> float:
    """A size, in the dtype of x, below which squares are finite, and from which 1 is nothing beside them."""
    return 2.0 ** (finfo(aval_of(x).dtype).maxexp // 2 - 1)


@elementwise(family=ByParts, hlo="chlo.acosh", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine, elementwise; NaN for reals below 1.

    >>> lax.acosh(1.0)
    Array(0., dtype=float32, weak_type=True)
    """


@acosh.derivative
def _(x: Any, *, out: Any) -> Any:
    # One root for x**2 - 1 would be on the wrong branch where the real part of x is negative.
    return rsqrt(x - 1) * rsqrt(x + 1)


@elementwise(
    family=ByParts, hlo="chlo.atanh", on_cpu=formula("logarithm.inverse_hyperbolic_tangent", DOUBLE),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent, elementwise; NaN for reals outside [-1, 1].

    >>> lax.atanh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@atanh.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 / ((1 + x) * (1 - x))
