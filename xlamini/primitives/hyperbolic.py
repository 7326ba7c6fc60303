"""Elementwise hyperbolic functions and their inverses."""
from __future__ import annotations

from typing import Any

from xlamini.primitives.accuracy import Accuracy, Accurate
from xlamini.primitives.cpu_math import DOUBLE, formula
from xlamini.primitives.elementwise import elementwise
from xlamini.primitives.exponential import TRANSCENDENTAL
from xlamini.primitives.kinds import COMPLEX, FLOAT
from xlamini.primitives.power import rsqrt, square


@elementwise(
    hlo="chlo.sinh", on_cpu=formula("exponential.hyperbolic_sine", DOUBLE),
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
    hlo="chlo.cosh", on_cpu=formula("exponential.hyperbolic_cosine", DOUBLE),
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
    # The factors keep the precision that 1 - out**2 loses where out is near 1.
    return (1 + out) * (1 - out)


@elementwise(hlo="chlo.asinh", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine, elementwise.

    >>> lax.asinh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@asinh.derivative
def _(x: Any, *, out: Any) -> Any:
    return rsqrt(1 + square(x))


@elementwise(hlo="chlo.acosh", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
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
    hlo="chlo.atanh", on_cpu=formula("logarithm.inverse_hyperbolic_tangent", DOUBLE),
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
