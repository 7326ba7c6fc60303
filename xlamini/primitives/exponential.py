"""Elementwise exponentials, logarithms, roots and what is made of them."""
from __future__ import annotations

from typing import Any

from xlamini.primitives.elementwise import COMPLEX, FLOAT, elementwise

TRANSCENDENTAL = 10


@elementwise(hlo="stablehlo.exponential", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def exp(x: Any) -> Any:
    """Exponential, elementwise: `e ** x`."""


@exp.derivative
def _(x: Any, *, out: Any) -> Any:
    return out


@elementwise(hlo="stablehlo.log", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def log(x: Any) -> Any:
    """Natural logarithm, elementwise; NaN for negative reals."""


@log.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 / x


@elementwise(hlo="stablehlo.tanh", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def tanh(x: Any) -> Any:
    """Hyperbolic tangent, elementwise."""


@tanh.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 - out * out
