"""The operations of StableHLO that take sizes as operands, in place of those that take them as attributes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jaxlib.mlir import ir

from xlamini.core import ShapedArray
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.lowering.context import Value
from xlamini.lowering.leading import NUMBER

Emit = Callable[..., Value]
_CUSTOM_CALL = "stablehlo.custom_call"


def takes_sizes(attributes: dict[str, Any]) -> bool:
    """Whether an operation has a symbolic size among its attributes, which are texts, sizes, or pairs of sizes."""
    return any(_has_size(value) for value in attributes.values() if isinstance(value, list | tuple))


def _has_size(values: Sequence[Any]) -> bool:
    return is_symbolic_shape(values) or any(_has_size(v) for v in values if isinstance(v, list | tuple))


def _with_shape(name: str) -> Emit:
    """An operation whose last operand is the shape of its result."""

    def emit(ctx: Any, *operands: Value, out: ShapedArray, **attributes: Any) -> Value:
        return ctx.many(name, [*operands, ctx.sizes(out.shape)], [ctx.mlir.type(out)], **attributes)[0]

    return emit


def _broadcast(ctx: Any, x: Value, *, out: ShapedArray, broadcast_dimensions: Sequence[int]) -> Value:
    """A broadcast which says of each dimension whether it grows; only one of the number 1 does."""
    grows = [not x.type.is_dynamic_dim(d) and x.type.get_dim_size(d) == 1 for d in range(x.type.rank)]
    return ctx.many(
        "stablehlo.dynamic_broadcast_in_dim",
        [x, ctx.sizes(out.shape)],
        [ctx.mlir.type(out)],
        broadcast_dimensions=broadcast_dimensions,
        known_expanding_dimensions=[d for d, wide in enumerate(grows) if wide],
        known_nonexpanding_dimensions=[d for d, wide in enumerate(grows) if not wide],
    )[0]


def _slice(ctx: Any, x: Value, *, out: ShapedArray, start_indices: Any, limit_indices: Any, strides: Any) -> Value:
    bounds = [ctx.sizes(each) for each in (start_indices, limit_indices, strides)]
    return ctx.many("stablehlo.real_dynamic_slice", [x, *bounds], [ctx.mlir.type(out)])[0]


def _dynamic_slice(ctx: Any, x: Value, *starts: Value, out: ShapedArray, slice_sizes: Any) -> Value:
    """A slice from the starts, which are clamped so that it lies within the array."""
    vector = ShapedArray((len(starts),), NUMBER.dtype)
    whole, part = _shape(ctx, x), ctx.sizes(slice_sizes)
    first = ctx.vector([ctx.op("stablehlo.convert", s, avals=[NUMBER]) for s in starts])
    last = ctx.op("stablehlo.subtract", whole, part, avals=[vector])
    start = ctx.op("stablehlo.clamp", ctx.constant(0, vector), first, last, avals=[vector])
    limit = ctx.op("stablehlo.add", start, part, avals=[vector])
    bounds = start, limit, ctx.constant(1, vector)
    return ctx.many("stablehlo.real_dynamic_slice", [x, *bounds], [ctx.mlir.type(out)])[0]


def _shape(ctx: Any, x: Value) -> Value:
    """The sizes of a value."""
    extents = [(d, x.type.get_dim_size(d), x.type.is_dynamic_dim(d)) for d in range(x.type.rank)]
    return ctx.vector([dimension_of(ctx, x, d) if unknown else ctx.size(n) for d, n, unknown in extents])


def dimension_of(ctx: Any, x: Value, d: int) -> Value:
    """One size of a value, by an operation."""
    return ctx.op("stablehlo.get_dimension_size", x, avals=[NUMBER], dimension=f"{d} : i64")


def _pad(ctx: Any, x: Value, value: Value, *, out: ShapedArray, **padding: Any) -> Value:
    amounts = [ctx.sizes(padding[f"{name}_padding{end}"]) for name, end in _PADDING]
    return ctx.many("stablehlo.dynamic_pad", [x, value, *amounts], [ctx.mlir.type(out)])[0]


_PADDING = ("edge", "_low"), ("edge", "_high"), ("interior", "")


def _gather(ctx: Any, x: Value, indices: Value, *, out: ShapedArray, slice_sizes: Any, **attributes: Any) -> Value:
    types = [ctx.mlir.type(out)]
    if not is_symbolic_shape(slice_sizes):
        return ctx.many("stablehlo.gather", [x, indices], types, slice_sizes=slice_sizes, **attributes)[0]
    return ctx.many("stablehlo.dynamic_gather", [x, indices, ctx.sizes(slice_sizes)], types, **attributes)[0]


def _convolution(ctx: Any, x: Value, kernel: Value, *, out: ShapedArray, padding: Any, **attributes: Any) -> Value:
    types = [ctx.mlir.type(out)]
    if isinstance(padding, str):
        return ctx.many("stablehlo.convolution", [x, kernel], types, padding=padding, **attributes)[0]
    return ctx.many("stablehlo.dynamic_conv", [x, kernel, _pairs(ctx, padding)], types, **attributes)[0]


def _pairs(ctx: Any, padding: Sequence[tuple[Any, Any]]) -> Value:
    """Pairs of sizes as an array of two columns."""
    flat = ctx.sizes([size for pair in padding for size in pair])
    return ctx.reshape(flat, ShapedArray((len(padding), 2), NUMBER.dtype))


_WINDOW = "window_dimensions", "window_strides", "base_dilations", "window_dilations"


def _reduce_window(
    ctx: Any, x: Value, start: Value, *, out: ShapedArray, regions: Any, padding: Any, **window: Any
) -> Value:
    """XLA's call for it, whose body is a function, where the window or its padding depends on a size."""
    if isinstance(padding, str) and not takes_sizes(window):
        types = [ctx.mlir.type(out)]
        return ctx.many("stablehlo.reduce_window", [x, start], types, regions, padding=padding, **window)[0]
    sizes = [ctx.sizes(window.get(name) or [1] * out.ndim) for name in _WINDOW]
    amounts = _pairs(ctx, [] if isinstance(padding, str) else padding)
    body = ctx.mlir.parse(f"[@{_function(ctx, regions[0], out)}]")
    return ctx.many(
        _CUSTOM_CALL,
        [x, start, *sizes, amounts],
        [ctx.mlir.type(out)],
        call_target_name='"stablehlo.dynamic_reduce_window"',
        called_computations=body,
        api_version="2 : i32",
    )[0]


def _function(ctx: Any, fill: Callable[[ir.Region], None], out: ShapedArray) -> str:
    """The name of a new function with the body of a reduction."""
    ctx.forbid_repetition()
    scalar = ctx.mlir.type(ShapedArray((), out.dtype))
    symbol = ctx.module.unused("reducer")
    function = ctx.module.new_function(symbol, [scalar] * 2, [scalar], "private")
    constants, ctx.constants = ctx.constants, {}  # a function cannot use those of another one
    fill(function.regions[0])
    ctx.constants = constants
    _return_from_function(function.regions[0].blocks[0], ctx.mlir)
    return symbol


def _return_from_function(block: ir.Block, mlir: Any) -> None:
    """Let a block that ends as a region does end as a function does."""
    end = list(block.operations)[-1].operation
    ir.Operation.create("func.return", [], list(end.operands), loc=mlir.unknown, ip=ir.InsertionPoint(end))
    end.erase()


def _refuse_generator(ctx: Any, *operands: Value, **_: Any) -> NoReturn:
    raise NotImplementedError(
        f"{ctx.eqn.primitive}: XLA's generator of random bits takes no symbolic size; use keys of threefry2x32"
    )


DYNAMIC: dict[str, Emit] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _with_shape("stablehlo.dynamic_reshape"),
    "stablehlo.iota": _with_shape("stablehlo.dynamic_iota"),
    "stablehlo.slice": _slice,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.pad": _pad,
    "stablehlo.gather": _gather,
    "stablehlo.convolution": _convolution,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.rng_bit_generator": _refuse_generator,
}
"""The dynamic form of an operation; all others take types with unknown sizes as they are."""
