"""Elementwise exponentials and logarithms, and the logistic function."""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.elementwise import COMPLEX, FLOAT, Elementwise, elementwise

TRANSCENDENTAL = 10
"""What we count for one evaluation, in floating-point operations."""


@elementwise(hlo="stablehlo.exponential", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def exp(x: Any) -> Any:
    """Exponential, elementwise: `e ** x`."""


@exp.derivative
def _(x: Any, *, out: Any) -> Any:
    return out


class Exp2(Elementwise):
    """StableHLO has the exponential to base e only."""

    def lower(self, ctx: Any, x: Any) -> Any:
        scaled = ctx.op("stablehlo.multiply", x, ctx.constant(math.log(2), ctx.aval_out))
        return ctx.op("stablehlo.exponential", scaled)


@elementwise(family=Exp2, accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def exp2(x: Any) -> Any:
    """Power of two, elementwise: `2 ** x`."""


@exp2.derivative
def _(x: Any, *, out: Any) -> Any:
    return math.log(2) * out


@elementwise(hlo="stablehlo.exponential_minus_one", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def expm1(x: Any) -> Any:
    """`e ** x - 1`, elementwise; precise also where x is small."""


@expm1.derivative
def _(x: Any, *, out: Any) -> Any:
    return out + 1


@elementwise(hlo="stablehlo.log", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def log(x: Any) -> Any:
    """Natural logarithm, elementwise; NaN for negative reals."""


@log.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 / x


@elementwise(hlo="stablehlo.log_plus_one", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def log1p(x: Any) -> Any:
    """Natural logarithm of `1 + x`, elementwise; precise also where x is small."""


@log1p.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 / (1 + x)


@elementwise(hlo="stablehlo.logistic", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def logistic(x: Any) -> Any:
    """The logistic function, elementwise: `1 / (1 + e ** -x)`."""


@logistic.derivative
def _(x: Any, *, out: Any) -> Any:
    return out * (1 - out)
