"""Elementwise exponentials and logarithms."""
from __future__ import annotations

import math
from typing import Any

from xlamini.primitives.base.accuracy import Accuracy, Accurate
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT
from xlamini.primitives.base.elementwise import elementwise
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.forms.cpu.math import DOUBLE, formula

TRANSCENDENTAL = 10
"""What we count for one evaluation, in floating-point operations."""


@elementwise(family=Accurate, hlo="stablehlo.exponential", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def exp(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Exponential, elementwise: `e ** x`.

    >>> lax.exp(0.0)
    Array(1., dtype=float32, weak_type=True)
    """


@exp.derivative
def _(x: Any, *, out: Any) -> Any:
    return out


class Exp2(Accurate):
    """StableHLO has the exponential to base e only.

    Narrow floats are multiplied by log 2 in float32: of bfloat16 the product would be off by up to 0.25, which makes a
    quarter of the power.
    """

    def by_xla(self, ctx: Any, *operands: Any, **attributes: Any) -> Any:
        aval = ctx.aval_out
        wide = aval.update(dtype=accumulator(aval.dtype))
        (x,) = operands if wide == aval else [ctx.op("stablehlo.convert", *operands, avals=[wide])]
        scaled = ctx.op("stablehlo.multiply", x, ctx.constant(math.log(2), wide), avals=[wide])
        power = ctx.op(self.hlo, scaled, avals=[wide], **attributes)
        return power if wide == aval else ctx.op("stablehlo.convert", power)


@elementwise(
    family=Exp2, hlo="stablehlo.exponential", on_cpu=formula("exponential.power_of_two", DOUBLE),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def exp2(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Power of two, elementwise: `2 ** x`.

    >>> lax.exp2(3.0)
    Array(8., dtype=float32, weak_type=True)
    """


@exp2.derivative
def _(x: Any, *, out: Any) -> Any:
    return math.log(2) * out


@elementwise(family=Accurate, hlo="stablehlo.exponential_minus_one", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def expm1(x: Any, *, accuracy: Accuracy = None) -> Any:
    """`e ** x - 1`, elementwise; precise also where x is small.

    >>> lax.expm1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@expm1.derivative
def _(x: Any, *, out: Any) -> Any:
    return exp(x)  # of out + 1 nothing is left where out is rounded to -1


@elementwise(family=Accurate, hlo="stablehlo.log", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def log(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Natural logarithm, elementwise; NaN for negative reals.

    >>> lax.log(1.0)
    Array(0., dtype=float32, weak_type=True)
    """


@log.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 / x


class Log2(Accurate):
    """StableHLO has the logarithm to base e only."""

    def by_xla(self, ctx: Any, *operands: Any, **attributes: Any) -> Any:
        natural = ctx.op(self.hlo, *operands, **attributes)
        return ctx.op("stablehlo.multiply", natural, ctx.constant(1 / math.log(2), ctx.aval_out))


@elementwise(family=Log2, hlo="stablehlo.log", accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL)
def log2(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Logarithm to base 2, elementwise; NaN for negative reals.

    >>> lax.log2(8.0)
    Array(3., dtype=float32, weak_type=True)
    """


@log2.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 / (x * math.log(2))


@elementwise(
    family=Accurate, hlo="stablehlo.log_plus_one", on_cpu=formula("logarithm.log_one_plus", DOUBLE),
    accepts=FLOAT | COMPLEX, flops=TRANSCENDENTAL,
)
def log1p(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Natural logarithm of `1 + x`, elementwise; precise also where x is small.

    >>> lax.log1p(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@log1p.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 / (1 + x)
