"""What smooth activations are made of, in forms that keep their digits, and their derivatives', for large arguments.

Bounds keep infinities out of formulas that are flat there; they have no derivative of their own, which would cost a
comparison.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from xlamini.core import aval_of
from xlamini.core.dtypes.limits import finfo
from xlamini.numpy.selection import where
from xlamini.primitives import FLOAT, abs, exp, is_complex, kind_of, min, sqrt
from xlamini.primitives.elementwise.arithmetic import bounded, finite
from xlamini.primitives.elementwise.hyperbolic import logistic, square_overflows
from xlamini.primitives.elementwise.special.error_function import erfc, gaussian
from xlamini.transforms.custom.custom_jvp import custom_jvp

Activation = Callable[[Any], Any]


@custom_jvp
def gated(x: Any, gate: Any) -> Any:
    """`x * gate`; the product of an infinity with a gate that is closed, or its derivative, would be NaN: it is 0."""
    return finite_below(x) * gate


gated.defjvps(
    lambda slope, out, x, gate: slope * gate,
    lambda slope, out, x, gate: slope * (finite(x) if _is_real(x) else x),
)


def finite_below(x: Any) -> Any:
    """x, with the lowest number in place of minus infinity, whose product with 0 would be NaN."""
    return bounded(x, low=-_largest(x), high=None) if _is_real(x) else x


def _is_real(x: Any) -> bool:
    return kind_of(aval_of(x).dtype) is FLOAT


def _largest(x: Any) -> float:
    return float(finfo(aval_of(x).dtype).max)


def logistic_gated(name: str, argument: Activation, growth: Activation, far: float | None = None) -> Activation:
    """The activation `x * logistic(argument(x))`, called `name`; `growth` is the derivative of `argument`.

    Beyond `far`, by default the largest number, the gate is that at `far`. The derivative keeps one array.
    """
    def value(x: Any) -> Any:
        return finite_below(x) * logistic(argument(_within(far, x)))

    def slope(x: Any) -> Any:
        x = _within(far, x)
        gate = logistic(argument(x))  # that of the value, so that a program has one exponential
        return gate * (1 + x * growth(x) * (1 - gate))

    value.__name__ = name
    activation = custom_jvp(value)
    activation.defjvps(lambda tangent, out, x: tangent * slope(x))
    return activation


def _within(far: float | None, x: Any) -> Any:
    """x between `-far` and `far`, or between the least and the largest number."""
    if is_complex(x):
        return x
    return finite(x) if far is None else bounded(x, low=-far, high=far)


silu: Final = logistic_gated("silu", lambda x: x, lambda x: 1)

_GELU = math.sqrt(8 / math.pi)

gelu_by_tanh: Final = logistic_gated(
    "gelu",
    lambda x: _GELU * (x + 0.044715 * x**3),  # (1 + tanh(u)) / 2 is logistic(2 * u)
    lambda x: _GELU * (1 + 0.134145 * x**2),
    far=30.0,  # the gate is 0 or 1 there, and the cube does not overflow
)


@custom_jvp
def gelu(x: Any) -> Any:
    """x times the probability that a standard normal number is below it."""
    return 0.5 * finite_below(x) * erfc(_scaled(x))


def _scaled(x: Any) -> Any:
    return _within(_ALL, x) * -math.sqrt(0.5)


_ALL = 40.0
"""Beyond, the probability is 0 or 1, and the density 0, in float64 too."""


def _slope_of_gelu(x: Any) -> Any:
    """The probability, and x times its density."""
    return 0.5 * erfc(_scaled(x)) + _within(_ALL, x) * gaussian(_scaled(x)) * (1 / math.sqrt(2 * math.pi))


gelu.defjvps(lambda tangent, out, x: tangent * _slope_of_gelu(x))


def gate_of_mish(x: Any) -> Any:
    """`tanh(log(1 + exp(x)))`, a quotient of polynomials of the exponential."""
    negative = x < 0
    power = exp(where(negative, x, -x))
    above = where(negative, power * (power + 2), 1 + 2 * power)
    return above / (above + where(negative, 2, 2 * power * power))


@custom_jvp
def soft_sign(x: Any) -> Any:
    """`x / (1 + abs(x))`, also of infinities."""
    if is_complex(x):
        return x / (abs(x) + 1)
    x = finite(x)
    return x / (abs(x) + 1)


soft_sign.defjvps(lambda slope, out, x: slope / (1 + abs(x)) ** 2)


@custom_jvp
def squareplus(x: Any, b: Any) -> Any:
    """`(x + sqrt(x ** 2 + b)) / 2`; where x is negative, without a difference."""
    root, negative = _root(x, b), x < 0
    return where(negative, b / where(negative, 2 * (root - x), 1), x / 2 + root / 2)


def _root(x: Any, b: Any) -> Any:
    """`sqrt(x ** 2 + b)`, also where the square would overflow, and b is nothing beside it."""
    far = abs(x) > square_overflows(x)
    return where(far, abs(x), sqrt(where(far, 0, x) ** 2 + b))


squareplus.defjvps(
    lambda slope, out, x, b: slope * (min(out, _largest(x)) / min(_root(x, b), _largest(x))),
    lambda slope, out, x, b: slope / (4 * _root(x, b)),
)


def sparse_plus(x: Any) -> Any:
    """0 up to -1, x from 1 on, a parabola between."""
    between = bounded(x, low=-1.0, high=1.0)
    return where(x <= -1.0, 0.0, where(x >= 1.0, x, (between + 1.0) ** 2 / 4))
