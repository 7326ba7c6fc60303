"""Running reductions and reversed axes, for which Mosaic has no operation: by log2(n) rotations of vectors."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import compare
from xlamini.lowering.kernels.context import Regions, Rule, constant_like
from xlamini.lowering.kernels.mosaic_shapes import iota, reshape, rotated, shape_of_value


def turned(ctx: Any, x: Value, by: int, axis: int) -> Value:
    """The vector with element i moved to i + by, around the end."""
    return rotated(ctx, x, ctx.index(by % shape_of_value(x)[axis]), axis)


def _rows(rule: Any) -> Any:
    """The rule for vectors of two dimensions or more, applied to one of one dimension as to a row."""

    def on_any(ctx: Any, x: Value, axis: int, *rest: Any) -> Value:
        own = shape_of_value(x)
        if len(own) > 1:
            return rule(ctx, x, axis, *rest)
        return reshape(ctx, rule(ctx, reshape(ctx, x, (1, *own)), 1, *rest), own)

    return on_any


@_rows
def _running(ctx: Any, x: Value, axis: int, combine: str, backward: bool) -> Value:
    """Each element combined with those before it, or behind it: those 1 away, then 2, 4, …"""
    count, places, reach = shape_of_value(x)[axis], iota(ctx, shape_of_value(x), axis), 1
    while reach < count:
        moved = turned(ctx, x, -reach if backward else reach, axis)
        both = ctx.many(combine, [x, moved], [x.type])[0]
        edge = constant_like(ctx, count - reach if backward else reach, places)
        inside = compare(ctx, "LT" if backward else "GE", places, edge)
        x, reach = ctx.one("arith.select", [inside, both, x], x.type), 2 * reach
    return x


@_rows
def _reversed(ctx: Any, x: Value, axis: int) -> Value:
    """Place i takes what is at i with all bits changed, one bit after the other."""
    places, bit = iota(ctx, shape_of_value(x), axis), 1
    while bit < shape_of_value(x)[axis]:
        mask = ctx.one("arith.andi", [places, constant_like(ctx, bit, places)])
        is_set = compare(ctx, "NE", mask, constant_like(ctx, 0, places))
        x = ctx.one("arith.select", [is_set, turned(ctx, x, bit, axis), turned(ctx, x, -bit, axis)], x.type)
        bit *= 2
    return x


def _reverse(
    ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping[str, Any]
) -> Value:
    (x,) = operands
    for axis in attributes["dimensions"]:
        count = shape_of_value(x)[axis]
        if count & (count - 1):
            raise KernelError(
                f"{ctx.place()}: a TPU kernel reverses axes of a power of two elements only, got {count}; reverse "
                "outside of the kernel"
            )
        x = ctx.in_words(_reversed, x, axis)
    return x


def _reduce_window(
    ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping[str, Any]
) -> Value:
    x, heard = operands[0], ctx.listen(regions[0])
    axis, backward = _running_axis(shape_of_value(x), attributes)
    if axis is None or len(heard) != 1:
        raise KernelError(f"{ctx.place()}: a TPU kernel has no windows but those of cumsum and its kin")
    return ctx.in_words(_running, x, axis, heard[0][0], backward)


def _running_axis(shape: Sequence[int], attributes: Mapping[str, Any]) -> tuple[int | None, bool]:
    """The axis along which a window is all that is before, or behind, an element."""
    window, padding = list(attributes["window_dimensions"]), _pairs(attributes["padding"])
    axes = [d for d, n in enumerate(window) if n > 1]
    if len(axes) != 1 or window[axes[0]] != shape[axes[0]]:
        return None, False
    (axis,) = axes
    around = {(window[axis] - 1, 0): False, (0, window[axis] - 1): True}
    return (axis, around[padding[axis]]) if padding[axis] in around else (None, False)


def _pairs(text: str) -> list[tuple[int, int]]:
    """The pairs of numbers in the text of an attribute of padding."""
    numbers = np.array(re.findall(r"-?\d+", text.split(">")[0]), int).reshape(-1, 2)
    return [(int(low), int(high)) for low, high in numbers]


ROTATIONS: dict[str, Rule] = {"stablehlo.reverse": _reverse, "stablehlo.reduce_window": _reduce_window}
