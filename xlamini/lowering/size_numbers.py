"""Symbolic sizes as values of the program that is lowered, with the arithmetic of Python's integers."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapedArray
from xlamini.lowering.context import Context, Value
from xlamini.lowering.leading import NUMBER

_FLAG = ShapedArray((), np.dtype(bool))


class SizeNumber:
    """The value of a size, an int32 of rank 0."""

    ctx: Context
    value: Value

    def __init__(self, ctx: Context, value: Value):
        self.ctx, self.value = ctx, value

    def _of(self, x: Any) -> Value:
        return x.value if isinstance(x, SizeNumber) else self.ctx.constant(x, NUMBER)

    def _op(self, name: str, other: Any) -> SizeNumber:
        return SizeNumber(self.ctx, self.ctx.op(name, self.value, self._of(other), avals=[NUMBER]))

    def __add__(self, other: Any) -> SizeNumber:
        return self._op("stablehlo.add", other)

    def __sub__(self, other: Any) -> SizeNumber:
        return self._op("stablehlo.subtract", other)

    def __mul__(self, other: Any) -> SizeNumber:
        return self._op("stablehlo.multiply", other)

    def __floordiv__(self, other: Any) -> SizeNumber:
        """x // y, by a division without a rest, because XLA's rounds towards zero."""
        divisor = SizeNumber(self.ctx, self._of(other))
        return (self - self % divisor)._op("stablehlo.divide", divisor)

    def __rfloordiv__(self, other: Any) -> SizeNumber:
        return SizeNumber(self.ctx, self._of(other)) // self

    def __mod__(self, other: Any) -> SizeNumber:
        """x % y, by two remainders, because XLA's has the sign of x."""
        divisor = SizeNumber(self.ctx, self._of(other))
        return (self._op("stablehlo.remainder", divisor) + divisor)._op("stablehlo.remainder", divisor)

    def __rmod__(self, other: Any) -> SizeNumber:
        return SizeNumber(self.ctx, self._of(other)) % self

    def maximum(self, other: Any) -> SizeNumber:
        return self._op("stablehlo.maximum", other)

    def minimum(self, other: Any) -> SizeNumber:
        return self._op("stablehlo.minimum", other)

    def compare(self, sign: str, other: Any) -> Value:
        direction = f"#stablehlo<comparison_direction {sign}>"
        operands = self.value, self._of(other)
        return self.ctx.op("stablehlo.compare", *operands, avals=[_FLAG], comparison_direction=direction)
