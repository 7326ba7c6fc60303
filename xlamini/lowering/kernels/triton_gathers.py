"""Elements of a value picked by their numbers along an axis, by `tt.gather`; slices, pads and reverses by it."""
from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.context import KernelContext, Rule, constant_like
from xlamini.lowering.kernels.equations import named
from xlamini.lowering.kernels.triton_shapes import arange, like, reshaped, shape_of, spread, transposed


def gathered(ctx: KernelContext, x: Value, numbers: Value, axis: int) -> Value:
    """The elements of these numbers along an axis; the numbers have the shape of the result."""
    return ctx.one("tt.gather", [x, numbers], like(ctx, x, shape_of(numbers)), axis=f"{axis} : i32")


def picked(ctx: KernelContext, x: Value, numbers: Value, axis: int) -> Value:
    """The same elements of each line along an axis, by a vector of numbers."""
    own = shape_of(x)
    size = shape_of(numbers)[0]
    return gathered(ctx, x, spread(ctx, numbers, (axis,), (*own[:axis], size, *own[axis + 1 :])), axis)


def stepped(ctx: KernelContext, x: Value, axis: int, start: int, size: int, stride: int) -> Value:
    """`size` elements of an axis, from `start` on, `stride` apart; a stride may be negative."""
    return picked(ctx, x, _line(ctx, start, size, stride), axis)


def moving(ctx: KernelContext, x: Value, axis: int, start: Value, size: int) -> Value:
    """`size` elements of an axis from a moving place on, which ends inside."""
    last = shape_of(x)[axis] - size
    place = _clipped(ctx, ctx.as_index(start), last)
    return picked(ctx, x, ctx.one("arith.addi", [arange(ctx, size), spread(ctx, place, (), (size,))]), axis)


def _line(ctx: KernelContext, start: int, size: int, stride: int) -> Value:
    numbers = arange(ctx, size)
    scaled = ctx.one("arith.muli", [numbers, constant_like(ctx, stride, numbers)])
    return ctx.one("arith.addi", [scaled, constant_like(ctx, start, numbers)])


def _clipped(ctx: KernelContext, numbers: Value, last: int) -> Value:
    """Numbers moved into 0 to `last`."""
    low = ctx.one("arith.maxsi", [numbers, constant_like(ctx, 0, numbers)])
    return ctx.one("arith.minsi", [low, constant_like(ctx, last, numbers)])


def _reverse(ctx: KernelContext, operands: Sequence[Value], _: Any, __: Any, attributes: Mapping) -> Value:
    (x,) = operands
    for axis in attributes["dimensions"]:
        size = shape_of(x)[axis]
        x = stepped(ctx, x, axis, size - 1, size, -1)
    return x


def _pad(ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Mapping) -> Value:
    x, value = operands
    lows, gaps = attributes["edge_padding_low"], attributes["interior_padding"]
    for axis, (low, gap, size) in enumerate(zip(lows, gaps, shape_of(types[0]), strict=True)):
        if size != shape_of(x)[axis] or low:
            x = _padded(ctx, x, value, axis, low, gap + 1, size)
    return x


def _padded(ctx: KernelContext, x: Value, value: Value, axis: int, low: int, step: int, size: int) -> Value:
    """An axis of `size` elements, of which the first of the operand is number `low`, the next ones `step` apart."""
    length = shape_of(x)[axis]
    places = _line(ctx, -low, size, 1)
    factor = constant_like(ctx, step, places)
    found = picked(ctx, x, _clipped(ctx, ctx.one("arith.divsi", [places, factor]), length - 1), axis)
    end = (length - 1) * step
    inside = _all(ctx, [
        _compare(ctx, 5, places, 0), _compare(ctx, 3, places, end),
        *([_compare(ctx, 0, ctx.one("arith.remsi", [places, factor]), 0)] if step > 1 else []),
    ])  # fmt: skip
    shape = shape_of(found)
    operands = [spread(ctx, inside, (axis,), shape), found, spread(ctx, value, (), shape)]
    return ctx.one("arith.select", operands, found.type)


def _compare(ctx: KernelContext, predicate: int, x: Value, number: int) -> Value:
    dialect: Any = ctx.mlir
    operands = [x, constant_like(ctx, number, x)]
    return ctx.one("arith.cmpi", operands, dialect.bools_like(x.type), predicate=f"{predicate} : i64")


def _all(ctx: KernelContext, masks: Sequence[Value]) -> Value:
    total, *rest = masks
    for mask in rest:
        total = ctx.one("arith.andi", [total, mask])
    return total


def _gather(
    ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Mapping
) -> Value:
    """Of one axis by numbers: the same of each line, or others in each."""
    x, indices = operands
    text, own, out = attributes["dimension_numbers"], shape_of(x), shape_of(types[0])
    axes, lines = _list(text, "start_index_map"), _list(text, "operand_batching_dims")
    sizes = list(attributes["slice_sizes"])
    shape = shape_of(indices)[:-1]
    if len(axes) != 1 or any(sizes[d] != (1 if d in (*axes, *lines) else own[d]) for d in range(len(own))):
        raise KernelError(
            f"{named(ctx.eqn)} gathers along several axes of a value, which a GPU's kernel cannot; read the ref itself "
            "with the arrays of indices: ref[i, j]"
        )
    (axis,) = axes
    numbers = _clipped(ctx, _as_int32(ctx, reshaped(ctx, indices, shape)), own[axis] - 1)
    if lines:
        return _of_each_line(ctx, x, numbers, axis, _list(text, "start_indices_batching_dims"), lines)
    found = picked(ctx, x, reshaped(ctx, numbers, (math.prod(shape),)), axis)
    split = reshaped(ctx, found, (*own[:axis], *shape, *own[axis + 1 :]))
    return _ordered(ctx, split, axis, len(shape), _list(text, "offset_dims"), len(out))


def _of_each_line(
    ctx: KernelContext, x: Value, numbers: Value, axis: int, index_dims: list[int], lines: list[int]
) -> Value:
    if index_dims != lines or len(lines) != len(shape_of(x)) - 1 or len(shape_of(numbers)) != len(shape_of(x)):
        raise KernelError(f"{named(ctx.eqn)} gathers lines in another order; transpose the value first")
    return gathered(ctx, x, numbers, axis)


def _ordered(ctx: KernelContext, x: Value, axis: int, count: int, offsets: list[int], rank: int) -> Value:
    """The dimensions of the numbers, `count` from `axis` on, put where the result has them."""
    of_numbers = iter(range(axis, axis + count))
    others = iter([*range(axis), *range(axis + count, rank)])
    return transposed(ctx, x, [next(others) if d in offsets else next(of_numbers) for d in range(rank)])


def _as_int32(ctx: KernelContext, x: Value) -> Value:
    element = x.type.element_type if hasattr(x.type, "element_type") else x.type
    width = ir.IntegerType(element).width
    if width == 32:
        return x
    kind = like(ctx, ctx.index(0), shape_of(x))
    return ctx.one("arith.trunci" if width > 32 else "arith.extsi", [x], kind)


def _list(text: str, name: str) -> list[int]:
    found = re.search(rf"\b{name} = \[([\d, ]*)\]", text)
    return [int(n) for n in found[1].split(",")] if found and found[1] else []


GATHERS: dict[str, Rule] = {"stablehlo.gather": _gather, "stablehlo.pad": _pad, "stablehlo.reverse": _reverse}
