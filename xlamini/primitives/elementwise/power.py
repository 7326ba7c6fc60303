"""Elementwise powers and roots."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import Avals, Params, ShapedArray, aval_of, literal
from xlamini.core.program.checks import KEEPS_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.primitives.base.accuracy import Accuracy, Accurate
from xlamini.primitives.base.broadcasting import stretched_out
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, INTEGER, kind_of
from xlamini.primitives.base.elementwise import Elementwise, elementwise, mul
from xlamini.primitives.elementwise.arithmetic import div
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, log
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.math import formula
from xlamini.primitives.shape.shape import broadcast_in_dim
from xlamini.runtime import Array


class IntegerPow(Elementwise):
    """The square is one operation, all else a formula."""

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        return None if params["y"] == 2 else super().form(platform, avals, outs, params)

    def lower(self, ctx: Any, x: Any, *, y: int) -> Any:
        assert y == 2, "another power is computed by its form"
        return ctx.op("stablehlo.multiply", x, x)


@elementwise(family=IntegerPow)
def integer_pow_p(x: Any, *, y: int) -> Any:
    """Power with a fixed integer exponent."""


@integer_pow_p.formula
def _(x: Any, *, y: int) -> Any:
    """A chain of multiplications."""
    one = literal(1, aval_of(x).dtype)
    if y == 0:
        return broadcast_in_dim(one, aval_of(x).shape, ())
    power = _power_by_squaring(x, abs(y))
    return power if y > 0 else div(one, power)


def _power_by_squaring(x: Any, y: int) -> Any:
    result = None
    while True:
        if y & 1:
            result = x if result is None else mul(result, x)
        y >>= 1
        if not y:
            return result
        x = mul(x, x)


integer_pow_p.name = "integer_pow"


@integer_pow_p.derivative
def _(x: Any, *, out: Any, y: int) -> Any:
    if y in (0, 1):
        return y
    return y * (x if y == 2 else integer_pow(x, y - 1))


def integer_pow(x: Any, y: int) -> Array:
    """Power with a fixed integer exponent, elementwise: `x ** y`.

    TypeError for an exponent that is no integer, or that is negative for an array of integers.

    >>> integer_pow(3.0, -1)
    Array(0.33333334, dtype=float32, weak_type=True)
    """
    if not isinstance(y, int | np.integer):
        raise TypeError(f"integer_pow: the exponent must be an integer, got {y!r}; lax.pow takes other ones")
    y = int(y)
    if y < 0 and kind_of(aval_of(x).dtype) in INTEGER:
        raise TypeError(
            f"integer_pow: integers have no power {y}, got x of type {aval_of(x).str_short(short_dtypes=False)}; "
            "convert x to a float dtype with .astype"
        )
    return integer_pow_p.bind(x, y=y)


def reciprocal(x: Any) -> Array:
    """`1 / x`, elementwise.

    >>> lax.reciprocal(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return integer_pow(x, -1)


class Pow(Elementwise):
    """The exponent may be an integer; in StableHLO it has the dtype of the base."""

    def __call__(self, *operands: Any, **named: Any) -> Any:
        x, y = self.arguments(operands, named)[0]
        return super().__call__(x, literal(y) if type(y) is int else y)

    def shape_rule(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        integer = kind_of(y.dtype) in INTEGER
        return super().shape_rule(x, y.update(dtype=x.dtype) if integer else y)

    def lower(self, ctx: Any, x: Any, y: Any) -> Any:
        base, exponent = ctx.avals_in
        if base.dtype != exponent.dtype:
            y = ctx.op("stablehlo.convert", y, avals=[exponent.update(dtype=base.dtype)])
        spread = zip((x, y), ctx.avals_in, strict=True)
        return ctx.op("stablehlo.power", *(stretched_out(ctx, v, a.update(dtype=base.dtype)) for v, a in spread))


@elementwise(family=Pow, accepts=FLOAT | COMPLEX, flops=2 * TRANSCENDENTAL)
def pow(x: Any, y: Any) -> Any:
    """Power, elementwise: `x ** y`; y has the dtype of x or is of integers. NaN for negative reals to a broken power.

    >>> pow(2.0, 3)
    Array(8., dtype=float32, weak_type=True)
    """


def _in_base(x: Any, y: Any, out: Any) -> Any:
    # 0 ** 0 has the derivative 0 in its base, but 0 * 0 ** -1 would be NaN.
    dtype, constant = aval_of(x).dtype, eq(y, 0)
    if aval_of(y).dtype == dtype:
        return y * pow(where(bitwise_and(constant, eq(x, 0)), 1, x), y - 1)
    y = convert(y, dtype)
    return where(constant, 0, y * pow(x, where(constant, 1, y) - 1))


def _in_exponent(x: Any, y: Any, out: Any) -> Any:
    # Powers of 0 do not change with a positive exponent; 0 * log(0) would be NaN.
    return out * log(where(eq(x, 0), 1, x))


pow.derivatives(_in_base, _in_exponent)


@elementwise(family=Accurate, hlo="stablehlo.sqrt", accepts=FLOAT | COMPLEX)
def sqrt(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Square root, elementwise; NaN for negative reals.

    >>> lax.sqrt(4.0)
    Array(2., dtype=float32, weak_type=True)
    """


@sqrt.derivative
def _(x: Any, *, out: Any) -> Any:
    return 0.5 * (1 / out)  # the reciprocal is what XLA has where it divides by the root


@elementwise(family=Accurate, hlo="stablehlo.rsqrt", accepts=FLOAT | COMPLEX)
def rsqrt(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Reciprocal of the square root, elementwise; NaN for negative reals.

    >>> lax.rsqrt(4.0)
    Array(0.5, dtype=float32, weak_type=True)
    """


@rsqrt.derivative
def _(x: Any, *, out: Any) -> Any:
    return -0.5 * (out / x)


@elementwise(
    family=Accurate, hlo="stablehlo.cbrt", on_cpu=formula("cube_root.cube_root"), accepts=FLOAT, flops=TRANSCENDENTAL
)
def cbrt(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Cube root, elementwise; that of a negative number is negative.

    >>> lax.cbrt(8.0)
    Array(2., dtype=float32, weak_type=True)
    """


@cbrt.derivative
def _(x: Any, *, out: Any) -> Any:
    return integer_pow(out, -2) / 3


class Square(Elementwise):
    """The square, as the product of x and x."""

    checks = KEEPS_NAN

    def lower(self, ctx: Any, x: Any) -> Any:
        return ctx.op("stablehlo.multiply", x, x)


@elementwise(family=Square)
def square(x: Any) -> Any:
    """Square, elementwise: `x * x`.

    >>> lax.square(3.0)
    Array(9., dtype=float32, weak_type=True)
    """


@square.derivative
def _(x: Any, *, out: Any) -> Any:
    return 2 * x
