"""Elementwise trigonometric functions and their inverses."""
from __future__ import annotations

from typing import Any

from xlamini.primitives.elementwise import COMPLEX, FLOAT, elementwise
from xlamini.primitives.exponential import TRANSCENDENTAL


@elementwise(hlo="stablehlo.sine", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def sin(x: Any) -> Any:
    """Sine, elementwise, of an angle in radians."""


@sin.derivative
def _(x: Any, *, out: Any) -> Any:
    return cos(x)


@elementwise(hlo="stablehlo.cosine", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def cos(x: Any) -> Any:
    """Cosine, elementwise, of an angle in radians."""


@cos.derivative
def _(x: Any, *, out: Any) -> Any:
    return -sin(x)
