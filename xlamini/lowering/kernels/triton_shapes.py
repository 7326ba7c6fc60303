"""StableHLO operations that move elements, in Triton's dialect: broadcasts, reshapes, transposes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import element_of
from xlamini.lowering.kernels.context import KernelContext, Rule, filled


def shape_of(x: Value | ir.Type) -> tuple[int, ...]:
    """The shape of a value, or of a type; a scalar's is ()."""
    kind = x if isinstance(x, ir.Type) else x.type
    return tuple(getattr(kind, "shape", ()))


def like(ctx: KernelContext, x: Value | ir.Type, shape: Sequence[int]) -> ir.Type:
    """The type of a tensor of these elements in another shape."""
    kind = x if isinstance(x, ir.Type) else x.type
    dialect: Any = ctx.mlir
    return dialect.with_shape(kind, tuple(shape))


def spread(ctx: KernelContext, x: Value, dims: Sequence[int], shape: Sequence[int]) -> Value:
    """A value in a larger shape, of which `dims` are its dimensions, in order; those of size 1 are repeated."""
    own, shape = shape_of(x), tuple(shape)
    if not own:
        return ctx.one("tt.splat", [x], like(ctx, x, shape)) if shape else x
    for d in range(len(shape)):
        if d not in dims:
            x = expanded(ctx, x, d)
    return x if shape_of(x) == shape else ctx.one("tt.broadcast", [x], like(ctx, x, shape))


def expanded(ctx: KernelContext, x: Value, axis: int) -> Value:
    """A value with one more dimension, of size 1."""
    shape = shape_of(x)
    if not shape:
        return ctx.one("tt.splat", [x], like(ctx, x, (1,)))
    return ctx.one("tt.expand_dims", [x], like(ctx, x, (*shape[:axis], 1, *shape[axis:])), axis=f"{axis} : i32")


def reshaped(ctx: KernelContext, x: Value, shape: Sequence[int]) -> Value:
    """The elements in row-major order in another shape."""
    own, shape = shape_of(x), tuple(shape)
    if own == shape:
        return x
    if not own:
        return ctx.one("tt.splat", [x], like(ctx, x, shape))
    if not shape:
        return ctx.one("tt.unsplat", [x], like(ctx, x, ()))
    added = _added_dims(own, shape)
    if added is None:
        return ctx.one("tt.reshape", [x], like(ctx, x, shape))
    for d in added:
        x = expanded(ctx, x, d)
    return x


def _added_dims(own: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """Where to put dimensions of size 1 into a shape to get another one; None if that does not do it."""
    rest, added = list(own), []
    for d, n in enumerate(shape):
        if rest and rest[0] == n:
            rest.pop(0)
        elif n == 1:
            added.append(d)
        else:
            return None
    return None if rest else added


def transposed(ctx: KernelContext, x: Value, order: Sequence[int]) -> Value:
    """A value with its dimensions in another order."""
    own = shape_of(x)
    if list(order) == list(range(len(own))):
        return x
    kind = like(ctx, x, [own[d] for d in order])
    return ctx.one("tt.trans", [x], kind, order=f"array<i32: {', '.join(map(str, order))}>")


def _broadcast(ctx: KernelContext, operands: Sequence[Value], types: Any, _: Any, attributes: Mapping) -> Value:
    return spread(ctx, operands[0], attributes["broadcast_dimensions"], shape_of(types[0]))


def _reshape(ctx: KernelContext, operands: Sequence[Value], types: Any, *_: Any) -> Value:
    return reshaped(ctx, operands[0], shape_of(types[0]))


def _transpose(ctx: KernelContext, operands: Sequence[Value], types: Any, _: Any, attributes: Mapping) -> Value:
    return transposed(ctx, operands[0], attributes["permutation"])


def _iota(ctx: KernelContext, operands: Any, types: Sequence[ir.Type], _: Any, attributes: Mapping) -> Value:
    shape, axis = shape_of(types[0]), int(attributes["iota_dimension"].split()[0])
    numbers, kind = arange(ctx, shape[axis]), like(ctx, types[0], (shape[axis],))
    element = element_of(kind)
    if isinstance(element, ir.FloatType):
        numbers = ctx.one("arith.sitofp", [numbers], kind)
    elif ir.IntegerType(element).width != 32:
        name = "arith.extsi" if ir.IntegerType(element).width > 32 else "arith.trunci"
        numbers = ctx.one(name, [numbers], kind)
    return spread(ctx, numbers, (axis,), shape)


def arange(ctx: KernelContext, size: int) -> Value:
    """The int32s from 0 on."""
    dialect: Any = ctx.mlir
    kind = dialect.tensor((size,), np.int32)
    if size == 1:
        return filled(ctx, 0, kind)
    return ctx.one("tt.make_range", [], kind, start="0 : i32", end=f"{size} : i32")


SHAPES: dict[str, Rule] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.iota": _iota,
}
