"""StableHLO operations that move elements, in Triton's dialect: broadcasts, reshapes, transposes, slices, joins."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import element_of
from xlamini.lowering.kernels.context import KernelContext, Rule, constant_like, filled
from xlamini.lowering.kernels.triton_sizes import named


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


# --- joins and slices: by halves, as Triton moves whole tensors only


def _concatenate(ctx: KernelContext, operands: Sequence[Value], types: Any, _: Any, attributes: Mapping) -> Value:
    """Pairs of equal parts are joined, then the pairs' pairs."""
    axis = int(attributes["dimension"].split()[0])
    if len({shape_of(x) for x in operands}) > 1:
        raise KernelError(
            f"{named(ctx.eqn)} joins parts of different sizes, which a GPU's kernel cannot; join arrays of one size, "
            "or store each part in its place of a ref"
        )
    parts = list(operands)
    while len(parts) > 1:
        parts = [_side_by_side(ctx, a, b, axis) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _side_by_side(ctx: KernelContext, x: Value, y: Value, axis: int) -> Value:
    own = shape_of(x)
    pairs = ctx.one("tt.join", [x, y], like(ctx, x, (*own, 2)))
    rank = len(own)
    ordered = transposed(ctx, pairs, [*range(axis), rank, *range(axis, rank)])
    return reshaped(ctx, ordered, (*own[:axis], 2 * own[axis], *own[axis + 1 :]))


def _slice(ctx: KernelContext, operands: Sequence[Value], types: Any, _: Any, attributes: Mapping) -> Value:
    """An aligned half, quarter, …, or every second element, …, of each dimension."""
    (x,) = operands
    starts, limits, strides = (attributes[k] for k in ("start_indices", "limit_indices", "strides"))
    for axis, (start, size, stride) in enumerate(zip(starts, shape_of(types[0]), strides, strict=True)):
        x = _sliced(ctx, x, axis, start, size, stride)
    return x


def _sliced(ctx: KernelContext, x: Value, axis: int, start: int, size: int, stride: int) -> Value:
    length = shape_of(x)[axis]
    if stride == 1 and size < length and size and length % size == 0 and start % size == 0:
        return _block(ctx, x, axis, length // size, start // size)
    if stride > 1 and size * stride == length:
        return _phase(ctx, x, axis, stride, start)
    if size == length:
        return x
    raise KernelError(
        f"{named(ctx.eqn)} takes elements {start}, {start + stride}, … ({size} of {length}) of a value, which a GPU's "
        "kernel cannot; take an aligned half, quarter, … of it, or read that part of the ref"
    )


def _block(ctx: KernelContext, x: Value, axis: int, count: int, number: int) -> Value:
    """One of `count` parts of an axis, by halves."""
    while count > 1:
        own = shape_of(x)
        halves = reshaped(ctx, x, (*own[:axis], 2, own[axis] // 2, *own[axis + 1 :]))
        count //= 2
        x = _half(ctx, halves, axis, number // count % 2)
    return x


def _phase(ctx: KernelContext, x: Value, axis: int, stride: int, start: int) -> Value:
    """Every `stride`th element of an axis, by halves."""
    while stride > 1:
        own = shape_of(x)
        pairs = reshaped(ctx, x, (*own[:axis], own[axis] // 2, 2, *own[axis + 1 :]))
        x, start, stride = _half(ctx, pairs, axis + 1, start % 2), start // 2, stride // 2
    return x


def _half(ctx: KernelContext, x: Value, axis: int, number: int) -> Value:
    """The element 0 or 1 of an axis of size 2."""
    own = shape_of(x)
    last = transposed(ctx, x, [*(d for d in range(len(own)) if d != axis), axis])
    kind = like(ctx, x, (*own[:axis], *own[axis + 1 :]))
    return ctx.emit("tt.split", [last], [kind, kind])[number]


def _dynamic_slice(ctx: KernelContext, operands: Sequence[Value], types: Any, _: Any, attributes: Mapping) -> Value:
    """One element of an axis at a moving place: the others are masked, and the axis is summed."""
    x, *starts = operands
    for axis, (start, size) in enumerate(zip(starts, shape_of(types[0]), strict=True)):
        length = shape_of(x)[axis]
        if size == length:
            continue
        if size != 1:
            raise KernelError(
                f"{named(ctx.eqn)} takes {size} of {length} elements of a value at a moving place, which a GPU's "
                "kernel cannot; read the part of the ref instead: ref[pl.ds(start, size)]"
            )
        x = _chosen(ctx, x, axis, start)
    return x


def _chosen(ctx: KernelContext, x: Value, axis: int, start: Value) -> Value:
    from xlamini.lowering.kernels.triton_reduce import summed  # which imports this file

    own = shape_of(x)
    chosen = ctx.one("arith.select", [_is_at(ctx, own, axis, start), x, constant_like(ctx, 0, x)], x.type)
    return reshaped(ctx, summed(ctx, chosen, axis), (*own[:axis], 1, *own[axis + 1 :]))


def _is_at(ctx: KernelContext, shape: Sequence[int], axis: int, start: Value) -> Value:
    """Which elements are at one place of an axis."""
    dialect: Any = ctx.mlir
    numbers = arange(ctx, shape[axis])
    place = spread(ctx, ctx.as_index(start), (), (shape[axis],))
    is_at = ctx.one("arith.cmpi", [numbers, place], dialect.bools_like(numbers.type), predicate="0 : i64")
    return spread(ctx, is_at, (axis,), shape)


def _dynamic_update_slice(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> Value:
    """One element of an axis is replaced at a moving place: chosen by a mask."""
    x, new, *starts = operands
    own, size = shape_of(x), shape_of(new)
    moving = [d for d in range(len(own)) if own[d] != size[d]]
    if any(size[d] != 1 for d in moving):
        raise KernelError(
            f"{named(ctx.eqn)} replaces {size} elements of {own} at a moving place, which a GPU's kernel cannot; write "
            "to the part of the ref instead: ref[pl.ds(start, size)] = value"
        )
    new = spread(ctx, new, range(len(own)), own)
    for d in moving:  # where all of them are at their places, the new elements
        new = ctx.one("arith.select", [_is_at(ctx, own, d, starts[d]), new, x], x.type)
    return new


SHAPES: dict[str, Rule] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.iota": _iota,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.slice": _slice,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
}
