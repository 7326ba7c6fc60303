"""Shapes, orders and parts of vectors in Mosaic."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import compare, element_of
from xlamini.lowering.kernels.context import Regions, Rule, constant_like, splat

Shape = Sequence[int]


def shape_of_value(x: Value | ir.Type) -> tuple[int, ...]:
    """The shape of a value, or of a type; () for a scalar."""
    kind: Any = x if isinstance(x, ir.Type) else x.type
    return tuple(kind.shape) if hasattr(kind, "shape") else ()


def typed(ctx: Any, shape: Shape, x: Value | ir.Type) -> ir.Type:
    """The type of a vector of elements like those of `x`."""
    return ctx.mlir.vector(shape, element_of(x if isinstance(x, ir.Type) else x.type))


def bits_to_ints(ctx: Any, x: Value) -> Value:
    """Bools as int32s of 0 and 1."""
    return ctx.one("arith.extui", [x], ctx.mlir.vector(shape_of_value(x), ctx.int32))


def ints_to_bits(ctx: Any, x: Value) -> Value:
    """Int32s as bools: whether they are not 0."""
    return compare(ctx, "NE", x, constant_like(ctx, 0, x))


def is_bool(x: Value | ir.Type) -> bool:
    """Whether a value, or a type, is of bools."""
    element = element_of(x if isinstance(x, ir.Type) else x.type)
    return isinstance(element, ir.IntegerType) and ir.IntegerType(element).width == 1


def _of_numbers(rule: Rule) -> Rule:
    """The rule, applied to bools as int32s: masks of a TPU cannot be moved."""

    def on_any(
        ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping[str, Any]
    ) -> Any:
        if not is_bool(types[0]):
            return rule(ctx, operands, types, regions, attributes)
        numbers = [bits_to_ints(ctx, x) if is_bool(x) else x for x in operands]
        kind = ctx.mlir.vector(shape_of_value(types[0]), ctx.int32)
        return ints_to_bits(ctx, rule(ctx, numbers, [kind], regions, attributes))

    return on_any


def reshape(ctx: Any, x: Value, shape: Shape) -> Value:
    """A scalar or a vector of numbers in another shape."""
    own, shape = shape_of_value(x), tuple(shape)
    if own == shape:
        return x
    kind = typed(ctx, shape, x)
    if not own:
        return ctx.one("vector.broadcast", [x], kind)
    if not shape:  # only words leave a vector
        word = ctx.word(x)
        scalar = ctx.one("vector.extract", [word], element_of(word.type), static_position=[0] * len(own))
        return ctx.converted(scalar, kind)
    return ctx.one("vector.shape_cast", [x], kind)


def sliced(ctx: Any, x: Value, starts: Shape, sizes: Shape) -> Value:
    """A static part of a vector."""
    if tuple(sizes) == shape_of_value(x):
        return x
    each = {"offsets": starts, "sizes": sizes, "strides": [1] * len(sizes)}
    texts = {name: f"[{', '.join(f'{n} : i64' for n in numbers)}]" for name, numbers in each.items()}
    return ctx.one("vector.extract_strided_slice", [x], typed(ctx, sizes, x), **texts)


def sliced_in(ctx: Any, x: Value, axis: int, start: int, size: int) -> Value:
    """A static part of a vector along one axis."""
    shape = shape_of_value(x)
    starts, sizes = [0] * len(shape), list(shape)
    starts[axis], sizes[axis] = start, size
    return sliced(ctx, x, starts, sizes)


def concatenated(ctx: Any, xs: Sequence[Value], axis: int) -> Value:
    """Vectors, one after the other along an axis."""
    if len(xs) == 1:
        return xs[0]
    shape = list(shape_of_value(xs[0]))
    shape[axis] = sum(shape_of_value(x)[axis] for x in xs)
    return ctx.one("tpu.concatenate", xs, typed(ctx, shape, xs[0]), dimension=f"{axis} : i32")


def iota(ctx: Any, shape: Shape, axis: int) -> Value:
    """int32s that count along an axis; vectors of one dimension are made as a row."""
    if len(shape) == 1:
        return reshape(ctx, iota(ctx, (1, *shape), 1), shape)
    return ctx.one("tpu.iota", [], ctx.mlir.vector(shape, ctx.int32), dimensions=f"array<i32: {axis}>")


def rotated(ctx: Any, x: Value, amount: Value, axis: int) -> Value:
    """The vector with element i moved to i + amount, around the end; `amount` is an int32 from 0 to below the size."""
    return ctx.one("tpu.dynamic_rotate", [x, amount], dimension=f"{axis} : si32")


def _broadcast(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Any) -> Value:
    (x,), (kind,) = operands, types
    own, shape, dims = shape_of_value(x), shape_of_value(kind), attributes["broadcast_dimensions"]
    if own:
        placed = dict(zip(dims, own, strict=True))
        x = reshape(ctx, x, [placed.get(d, 1) for d in range(len(shape))])
    return x if x.type == kind else ctx.one("vector.broadcast", [x], kind)


def _reshape(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    return reshape(ctx, operands[0], shape_of_value(types[0]))


def _transpose(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Any) -> Value:
    (x,), order = operands, list(attributes["permutation"])
    kept = [d for d in order if shape_of_value(x)[d] != 1]
    if kept == sorted(kept):
        return reshape(ctx, x, shape_of_value(types[0]))
    return ctx.one("tpu.transpose", [x], types[0], permutation=order)


def _iota(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Any) -> Value:
    x = iota(ctx, shape_of_value(types[0]), int(attributes["iota_dimension"].split()[0]))
    return ctx.converted(x, types[0])


def _slice(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Any) -> Value:
    if any(step != 1 for step in attributes["strides"]):
        raise KernelError(
            f"{ctx.place()}: a TPU cannot take each {max(attributes['strides'])}th element of a value; take it from "
            "the ref: ref[start:stop:step]"
        )
    return sliced(ctx, operands[0], attributes["start_indices"], shape_of_value(types[0]))


def _concatenate(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Any) -> Value:
    return concatenated(ctx, operands, int(attributes["dimension"].split()[0]))


def _pad(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Any) -> Value:
    x, value = operands
    if any(attributes["interior_padding"]):
        raise KernelError(f"{ctx.place()}: a TPU cannot pad between the elements of a value; pad outside of the kernel")
    for axis, pair in enumerate(zip(attributes["edge_padding_low"], attributes["edge_padding_high"], strict=True)):
        x = _padded(ctx, x, value, axis, *pair)
    return x


def _padded(ctx: Any, x: Value, value: Value, axis: int, low: int, high: int) -> Value:
    """With `low` more elements in front and `high` behind; numbers below 0 remove some."""
    shape = list(shape_of_value(x))
    if low < 0 or high < 0:
        x = sliced_in(ctx, x, axis, max(-low, 0), shape[axis] + min(low, 0) + min(high, 0))
    parts = [x]
    for place, count in ((0, low), (2, high)):
        if count > 0:
            shape[axis] = count
            parts.insert(place, reshape(ctx, value, shape))
    return concatenated(ctx, parts, axis)


def static_number(x: Value) -> int | None:
    """The number that a value is, if it is a constant."""
    owner = x.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def _dynamic_slice(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    x, *starts = operands
    for axis, (start, size) in enumerate(zip(starts, shape_of_value(types[0]), strict=True)):
        x = _sliced_at(ctx, x, axis, start, size)
    return x


def _sliced_at(ctx: Any, x: Value, axis: int, start: Value, size: int) -> Value:
    """A part of a vector that begins at a number of the program, along an axis: it is moved to the front."""
    count, number = shape_of_value(x)[axis], static_number(start)
    if size == count:
        return x
    if number is not None:
        return sliced_in(ctx, x, axis, min(max(number, 0), count - size), size)
    back = ctx.one("arith.subi", [ctx.index(count), _inside(ctx, start, count - size)])
    amount = ctx.one("arith.remsi", [back, ctx.index(count)])
    return sliced_in(ctx, ctx.in_words(rotated, x, amount, axis), axis, 0, size)


def _inside(ctx: Any, start: Value, last: int) -> Value:
    """A start from 0 to `last`, as an int32."""
    above = ctx.one("arith.maxsi", [ctx.as_index(start), ctx.index(0)])
    return ctx.one("arith.minsi", [above, ctx.index(last)])


def _dynamic_update_slice(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    x, part, *starts = operands
    shape, sizes = shape_of_value(x), shape_of_value(part)
    inside = None
    zero = ctx.one("arith.constant", [], element_of(x.type), value=splat(ctx, 0, element_of(x.type)))
    for axis, (start, count, size) in enumerate(zip(starts, shape, sizes, strict=True)):
        if size < count:
            at = _inside(ctx, start, count - size)
            part = ctx.in_words(rotated, _padded(ctx, part, zero, axis, 0, count - size), at, axis)
            inside = _both(ctx, inside, _is_within(ctx, shape, axis, at, size))
    return part if inside is None else ctx.one("arith.select", [inside, part, x], x.type)


def _is_within(ctx: Any, shape: Shape, axis: int, start: Value, size: int) -> Value:
    place = iota(ctx, shape, axis)
    end = ctx.one("arith.addi", [start, ctx.index(size)])
    first, last = (ctx.one("vector.broadcast", [n], place.type) for n in (start, end))
    return _both(ctx, compare(ctx, "GE", place, first), compare(ctx, "LT", place, last))


def _both(ctx: Any, x: Value | None, y: Value) -> Value:
    return y if x is None else ctx.one("arith.andi", [x, y])


def merged(shape: Shape, first: int, last: int) -> list[int]:
    """The shape with the dimensions from `first` to before `last` as one."""
    return [*shape[:first], math.prod(shape[first:last]), *shape[last:]]


SHAPES: dict[str, Rule] = {
    name: _of_numbers(rule)
    for name, rule in {
        "stablehlo.broadcast_in_dim": _broadcast,
        "stablehlo.reshape": _reshape,
        "stablehlo.transpose": _transpose,
        "stablehlo.iota": _iota,
        "stablehlo.slice": _slice,
        "stablehlo.concatenate": _concatenate,
        "stablehlo.pad": _pad,
        "stablehlo.dynamic_slice": _dynamic_slice,
        "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    }.items()
}
