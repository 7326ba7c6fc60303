"""Elementwise arithmetic: sums, products, powers, extrema, rounding.

`mul`, `neg` and `add_any` stand in elementwise.py, because the family's own rules are made of them.
"""
from __future__ import annotations

from typing import Any

from xlamini.core.tracer import aval_of, literal
from xlamini.primitives.comparison import eq, gt, lt
from xlamini.primitives.elementwise import (
    ANY,
    Elementwise,
    elementwise,
    mul,
    neg,
)
from xlamini.primitives.select import where

__all__ = ["mul", "neg"]


@elementwise(hlo="stablehlo.add", accepts=ANY)
def add(x: Any, y: Any) -> Any:
    """Addition, elementwise: `x + y`."""


add.derivatives(lambda x, y, out: 1, lambda x, y, out: 1)


@add.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return ct, ct


@elementwise(hlo="stablehlo.subtract")
def sub(x: Any, y: Any) -> Any:
    """Subtraction, elementwise: `x - y`."""


sub.derivatives(lambda x, y, out: 1, lambda x, y, out: -1)


@sub.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return ct, neg(ct)


@elementwise(hlo="stablehlo.divide")
def div(x: Any, y: Any) -> Any:
    """Division, elementwise; between integers it rounds towards zero."""


div.derivatives(lambda x, y, out: 1 / y, lambda x, y, out: -out / y)


@div.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return div(ct, y), None


class IntegerPow(Elementwise):
    """`x ** y` for a fixed integer y, as a chain of multiplications."""

    def lower(self, ctx: Any, x: Any, *, y: int) -> Any:
        if y == 0:
            return ctx.constant(1, ctx.aval_out)
        power = _power_by_squaring(ctx, x, abs(y))
        return power if y > 0 else ctx.op("stablehlo.divide", ctx.constant(1, ctx.aval_out), power)


def _power_by_squaring(ctx: Any, x: Any, y: int) -> Any:
    result = None
    while True:
        if y & 1:
            result = x if result is None else ctx.op("stablehlo.multiply", result, x)
        y >>= 1
        if not y:
            return result
        x = ctx.op("stablehlo.multiply", x, x)


@elementwise(family=IntegerPow)
def integer_pow(x: Any, *, y: int) -> Any:
    """Power with a fixed integer exponent, elementwise: `x ** y`."""


@integer_pow.derivative
def _(x: Any, *, out: Any, y: int) -> Any:
    if y == 0:
        return 0
    return y if y == 1 else y * integer_pow(x, y=y - 1)


def _share(wins: Any, ties: Any, out: Any) -> Any:
    """1 where this operand decides the extremum, 1/2 where both do, 0 elsewhere."""
    one, half, nothing = (literal(v, aval_of(out).dtype) for v in (1, 0.5, 0))
    return where(wins, one, where(ties, half, nothing))


@elementwise(hlo="stablehlo.maximum", accepts=ANY)
def max(x: Any, y: Any) -> Any:
    """The larger of two values, elementwise; NaN if either is NaN."""


max.derivatives(
    lambda x, y, out: _share(gt(x, y), eq(x, y), out),
    lambda x, y, out: _share(lt(x, y), eq(x, y), out),
)


@elementwise(hlo="stablehlo.minimum", accepts=ANY)
def min(x: Any, y: Any) -> Any:
    """The smaller of two values, elementwise; NaN if either is NaN."""


min.derivatives(
    lambda x, y, out: _share(lt(x, y), eq(x, y), out),
    lambda x, y, out: _share(gt(x, y), eq(x, y), out),
)
