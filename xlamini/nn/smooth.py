"""What smooth activations are made of, in forms that keep their digits, and their derivatives', for large arguments.

The gates are quotients of `exp(-abs(x))`, which neither overflows nor cancels, and cost one exponential for the value
and the derivative.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.core.dtypes.limits import finfo
from xlamini.numpy.selection import where
from xlamini.primitives import FLOAT, abs, exp, is_complex, kind_of, max, min, sqrt
from xlamini.primitives.hyperbolic import logistic, square_overflows
from xlamini.transforms.custom.custom_jvp import custom_jvp


@custom_jvp
def gated(x: Any, gate: Any) -> Any:
    """`x * gate`; the product of an infinity with a gate that is closed, or its derivative, would be NaN: it is 0."""
    return finite_below(x) * gate


gated.defjvps(
    lambda slope, out, x, gate: slope * gate,
    lambda slope, out, x, gate: slope * min(finite_below(x), _largest(x)) if _is_real(x) else slope * x,
)


def finite_below(x: Any) -> Any:
    """x, with the lowest number in place of minus infinity, whose product with 0 would be NaN."""
    return max(x, -_largest(x)) if _is_real(x) else x


def _is_real(x: Any) -> bool:
    return kind_of(aval_of(x).dtype) is FLOAT


def _largest(x: Any) -> float:
    return float(finfo(aval_of(x).dtype).max)


def gate_of_gelu(x: Any) -> Any:
    """`(1 + tanh(u)) / 2 = logistic(2 * u)`, with the polynomial u of `gelu`."""
    if not is_complex(x):
        x = max(min(x, _FAR), -_FAR)  # beyond, the gate is 0 or 1, but the square of x may overflow
    argument = math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)
    if is_complex(x):
        return logistic(argument)
    negative = argument < 0
    power = exp(where(negative, argument, -argument))
    share = 1 / (1 + power)
    return where(negative, power * share, share)


_FAR = 30.0


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
    bounded = max(min(x, _largest(x)), -_largest(x))
    return bounded / (abs(bounded) + 1)


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
    between = max(min(x, 1.0), -1.0)
    return where(x <= -1.0, 0.0, where(x >= 1.0, x, (between + 1.0) ** 2 / 4))
