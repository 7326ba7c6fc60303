"""What smooth activations are made of, in forms that keep their digits, and their derivatives', for large arguments.

Bounds keep infinities out of formulas that are flat there; they have no derivative of their own, which would cost a
comparison.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.core.dtypes.limits import finfo
from xlamini.numpy.selection import where
from xlamini.primitives import abs, exp, is_complex, max, min, sqrt
from xlamini.primitives.arithmetic import bounded
from xlamini.primitives.exponential import logistic
from xlamini.primitives.hyperbolic import square_overflows
from xlamini.transforms.custom.custom_jvp import custom_jvp


def finite_below(x: Any) -> Any:
    """x, with the lowest number in place of minus infinity, whose product with 0 would be NaN."""
    return x if is_complex(x) else bounded(x, low=float(finfo(aval_of(x).dtype).min), high=None)


def gate_of_gelu(x: Any) -> Any:
    """`(1 + tanh(u)) / 2 = logistic(2 * u)`, with the polynomial u of `gelu`."""
    if not is_complex(x):
        x = bounded(x, low=-_FAR, high=_FAR)  # beyond, the gate is 0 or 1, but the square of x may overflow
    return logistic(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


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
    largest = float(finfo(aval_of(x).dtype).max)
    finite = max(min(x, largest), -largest)
    return finite / (abs(finite) + 1)


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
    lambda slope, out, x, b: slope * (out / _root(x, b)),
    lambda slope, out, x, b: slope / (4 * _root(x, b)),
)


def sparse_plus(x: Any) -> Any:
    """0 up to -1, x from 1 on, a parabola between."""
    between = bounded(x, low=-1.0, high=1.0)
    return where(x <= -1.0, 0.0, where(x >= 1.0, x, (between + 1.0) ** 2 / 4))
