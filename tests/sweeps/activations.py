"""Sweeps of the activations of nn, in forms that do not cancel."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

from tests.sweeps.elementary import row
from xlamini import jvp, nn
from xlamini.numpy import ones_like


def ends(zero: float, plus: float, minus: float) -> Callable[[float], float]:
    """The values at 0 and at the infinities."""
    return lambda x: zero if x == 0 else plus if x > 0 else minus


def gate(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def silu_slope(x: Any) -> Any:
    return gate(x) * (1 + x * gate(-x))


def polynomial(x: Any) -> Any:
    """Twice the argument of the hyperbolic tangent in `gelu`, and its derivative."""
    a, b = mp.sqrt(8 / mp.pi), mp.mpf("0.044715")
    return a * (x + b * x**3), a * (1 + 3 * b * x * x)


def gelu(x: Any) -> Any:
    return x * gate(polynomial(x)[0])


def gelu_slope(x: Any) -> Any:
    u, du = polynomial(x)
    return gate(u) * (1 + x * gate(-u) * du)


def normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def normal_density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def softplus(x: Any) -> Any:
    return max(x, 0) + mp.log1p(mp.exp(-abs(x)))


def mish_slope(x: Any) -> Any:
    plus = softplus(x)
    return mp.tanh(plus) + x * gate(x) / mp.cosh(plus) ** 2


def squareplus(x: Any) -> Any:
    root = mp.sqrt(x * x + 4)
    return (x + root) / 2 if x > 0 else 2 / (root - x)


SELU = mp.mpf("1.0507009873554804934193349852946"), mp.mpf("1.6732632423543772848170429916717")


def selu(x: Any) -> Any:
    return SELU[0] * (x if x > 0 else SELU[1] * mp.expm1(x))


def slope_of(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of an elementwise function, whose own derivative is swept then."""
    return lambda x: jvp(function, (x,), (ones_like(x),))[1]


ACTIVATIONS = [
    row("nn.softplus: slope", slope_of(nn.softplus), gate, ends(0.5, 1, 0), lambda x: gate(x) * gate(-x)),
    row("nn.log_sigmoid: slope", slope_of(nn.log_sigmoid), lambda x: gate(-x), ends(0.5, 0, 1),
        lambda x: -gate(x) * gate(-x)),
    row("nn.sigmoid", nn.sigmoid, gate, ends(0.5, 1, 0), lambda x: gate(x) * gate(-x)),
    row("nn.silu", nn.silu, lambda x: x * gate(x), ends(0, np.inf, 0), silu_slope, -86, 1e30),
    row("nn.softplus", nn.softplus, softplus, ends(np.log(2), np.inf, 0), gate),
    row("nn.log_sigmoid", nn.log_sigmoid, lambda x: -softplus(-x), ends(-np.log(2), 0, -np.inf), lambda x: gate(-x)),
    row("nn.soft_sign", nn.soft_sign, lambda x: x / (1 + abs(x)), ends(0, 1, -1), lambda x: 1 / (1 + abs(x)) ** 2),
    row("nn.gelu", nn.gelu, gelu, ends(0, np.inf, 0), gelu_slope, -8, 1e30),
    row(
        "nn.gelu: exact", lambda x: nn.gelu(x, approximate=False), lambda x: x * normal(x), ends(0, np.inf, 0),
        lambda x: normal(x) + x * normal_density(x), -12, 1e30,
    ),
    row("nn.mish", nn.mish, lambda x: x * mp.tanh(softplus(x)), ends(0, np.inf, 0), mish_slope, -86, 1e30),
    row(
        "nn.elu", nn.elu, lambda x: x if x > 0 else mp.expm1(x), ends(0, np.inf, -1),
        lambda x: mp.mpf(1) if x > 0 else mp.exp(x),
    ),
    row(
        "nn.selu", nn.selu, selu, ends(0, np.inf, float(-SELU[0] * SELU[1])),
        lambda x: SELU[0] * (1 if x > 0 else SELU[1] * mp.exp(x)),
    ),
    row(
        "nn.squareplus", nn.squareplus, squareplus, ends(1, np.inf, 0),
        lambda x: squareplus(x) / mp.sqrt(x * x + 4), -1e12, 1e30,
    ),
]
