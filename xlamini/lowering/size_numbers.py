"""Symbolic sizes as values of the program that is lowered."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapedArray
from xlamini.core.sizes.arithmetic import SizeValue
from xlamini.lowering.context import Context, Value
from xlamini.lowering.leading import NUMBER

_FLAG = ShapedArray((), np.dtype(bool))


class SizeNumber(SizeValue):
    """The value of a size, an int32 of rank 0."""

    ctx: Context
    value: Value

    def __init__(self, ctx: Context, value: Value):
        self.ctx, self.value = ctx, value

    def number(self, x: Any) -> SizeNumber:
        return size_number(self.ctx, x)

    def operation(self, name: str, other: SizeNumber) -> SizeNumber:
        return SizeNumber(self.ctx, self.ctx.op(f"stablehlo.{name}", self.value, other.value, avals=[NUMBER]))

    def compare(self, sign: str, other: Any) -> Value:
        direction = f"#stablehlo<comparison_direction {sign}>"
        operands = self.value, self.number(other).value
        return self.ctx.op("stablehlo.compare", *operands, avals=[_FLAG], comparison_direction=direction)


def size_number(ctx: Context, x: Any) -> SizeNumber:
    """A number, or a value of a size as it is, as a value of the program."""
    return x if isinstance(x, SizeNumber) else SizeNumber(ctx, ctx.constant(x, NUMBER))
