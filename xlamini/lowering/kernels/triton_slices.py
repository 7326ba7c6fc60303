"""Slices and joins in Triton's dialect: halves by `tt.split` and `tt.join`, other parts by their numbers."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.context import KernelContext, Rule, constant_like
from xlamini.lowering.kernels.equations import named
from xlamini.lowering.kernels.triton_gathers import moving, stepped
from xlamini.lowering.kernels.triton_reduce import summed
from xlamini.lowering.kernels.triton_shapes import arange, like, reshaped, shape_of, spread, transposed


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
    starts, strides = attributes["start_indices"], attributes["strides"]
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
    return stepped(ctx, x, axis, start, size, stride)


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
    x, *starts = operands
    for axis, (start, size) in enumerate(zip(starts, shape_of(types[0]), strict=True)):
        length = shape_of(x)[axis]
        if size != length:
            x = _chosen(ctx, x, axis, start) if size == 1 else moving(ctx, x, axis, start, size)
    return x


def _chosen(ctx: KernelContext, x: Value, axis: int, start: Value) -> Value:
    """One element of an axis at a moving place: the others are masked, and the axis is summed."""
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


SLICES: dict[str, Rule] = {
    "stablehlo.concatenate": _concatenate,
    "stablehlo.slice": _slice,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
}
