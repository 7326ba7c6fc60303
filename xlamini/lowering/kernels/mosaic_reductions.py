"""Reductions of vectors in Mosaic."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import compare, element_of, is_float
from xlamini.lowering.kernels.context import Regions, Rule, constant_like
from xlamini.lowering.kernels.mosaic_shapes import (
    bits_to_ints,
    concatenated,
    ints_to_bits,
    iota,
    is_bool,
    reshape,
    shape_of_value,
    sliced_in,
    typed,
)

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_INFINITY = float("inf")

_KINDS = {
    "stablehlo.add": ("<add>", "<add>", 0.0, 0),
    "stablehlo.maximum": ("<maximumf>", "<maxsi>", -_INFINITY, _INT_MIN),
    "stablehlo.minimum": ("<minimumf>", "<minsi>", _INFINITY, _INT_MAX),
}
"""By the operation that combines: the kind of a reduction of floats, of ints, and what each starts from."""

_OF_BITS = {"stablehlo.and": "stablehlo.minimum", "stablehlo.or": "stablehlo.maximum"}


def reduced(ctx: Any, combine: str, x: Value, axes: Sequence[int]) -> Value:
    """The reduction of float32s or int32s over axes; one over all axes gives a scalar."""
    own = shape_of_value(x)
    if len(axes) == len(own):  # Mosaic's reductions give vectors
        row = reduced(ctx, combine, reshape(ctx, x, (1, *own)), [axis + 1 for axis in axes])
        return reshape(ctx, reshape(ctx, row, [1] * (len(own) + 1)), ())
    floats, ints, *starts = _KINDS[combine]
    kind = typed(ctx, [n for d, n in enumerate(own) if d not in axes], x)
    start = ctx.splat(starts[not is_float(x)], kind)
    name = floats if is_float(x) else ints
    how = {"kind": f"#vector.kind{name}", "reduction_dims": list(axes)}
    return ctx.emit("vector.multi_reduction", [x, start], [kind], **how)[0]


def _reduce(
    ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping[str, Any]
) -> Any:
    heard, axes = ctx.listen(regions[0]), list(attributes["dimensions"])
    if len(operands) == 4:
        return _reduced_pairs(ctx, operands, axes[0], heard)
    if len(heard) != 1 or len(operands) != 2:
        raise KernelError(f"{ctx.place()}: a TPU reduces by sum, max, min, and, or, xor and product only")
    (combine, _), x = heard[0], operands[0]
    if is_bool(x):
        return ints_to_bits(ctx, reduced(ctx, _OF_BITS[combine], bits_to_ints(ctx, x), axes))
    out = ctx.in_words(_by_kind, x, combine, axes)
    return out if _is_neutral(combine, operands[1]) else ctx.many(combine, [out, operands[1]], [out.type])[0]


def _by_kind(ctx: Any, x: Value, combine: str, axes: Sequence[int]) -> Value:
    is_order = combine in ("stablehlo.maximum", "stablehlo.minimum")
    if is_order and not is_float(x) and ctx.is_unsigned():
        return _signed(ctx, reduced(ctx, combine, _signed(ctx, x), axes))
    return reduced(ctx, combine, x, axes) if combine in _KINDS else _halved(ctx, combine, x, axes)


def _signed(ctx: Any, x: Value) -> Value:
    """Unsigned numbers as signed ones in the same order, or back."""
    return ctx.one("arith.xori", [x, constant_like(ctx, _INT_MIN, x)])


def _is_neutral(combine: str, start: Value) -> bool:
    """Whether the start is that of the reduction anyway: a constant is, as reductions of primitives have no other."""
    return combine not in _KINDS or (not isinstance(start.owner, ir.Block) and start.owner.name == "arith.constant")


def _halved(ctx: Any, combine: str, x: Value, axes: Sequence[int]) -> Value:
    """A reduction that Mosaic does not have: one half of the vector with the other, until one element is left."""
    shape = shape_of_value(x)
    for axis in axes:
        while (count := shape_of_value(x)[axis]) > 1:
            x = _folded(ctx, combine, x, axis, count)
    return reshape(ctx, x, [n for d, n in enumerate(shape) if d not in axes])


def _folded(ctx: Any, combine: str, x: Value, axis: int, count: int) -> Value:
    half = count // 2
    first, second = (sliced_in(ctx, x, axis, start, half) for start in (0, half))
    both = ctx.many(combine, [first, second], [first.type])[0]
    return concatenated(ctx, [both, sliced_in(ctx, x, axis, count - 1, 1)], axis) if count % 2 else both


def _reduced_pairs(ctx: Any, operands: Sequence[Value], axis: int, heard: Sequence[tuple[str, Any]]) -> list[Value]:
    """The extremum and its place, as `argmax` has them."""
    x, places = operands[:2]
    directions = [a["comparison_direction"] for name, a in heard if name == "stablehlo.compare"]
    is_max = bool(directions) and "GT" in directions[0]
    if not directions or not (is_max or "LT" in directions[0]):
        raise KernelError(f"{ctx.place()}: a TPU reduces pairs only for argmax and argmin")
    x, index_type = ctx.word(x), element_of(places.type)
    combine = "stablehlo.maximum" if is_max else "stablehlo.minimum"
    most = reduced(ctx, combine, x, [axis])
    found = _place_of_float(ctx, x, axis, is_max) if is_float(x) else _place_of_int(ctx, x, most, axis)
    first = ctx.converted(most, ctx.mlir.vector(shape_of_value(most), element_of(operands[0].type)))
    return [first, ctx.converted(found, ctx.mlir.vector(shape_of_value(found), index_type))]


def _place_of_float(ctx: Any, x: Value, axis: int, is_max: bool) -> Value:
    own = shape_of_value(x)
    if len(own) == 1:
        return reshape(ctx, reshape(ctx, _place_of_float(ctx, reshape(ctx, x, (1, *own)), 1, is_max), (1, 1)), ())
    kind = ctx.mlir.vector([n for d, n in enumerate(own) if d != axis], ctx.int32)
    which = "arg_max" if is_max else "arg_min"
    how = {"axis": f"{axis} : i32", "kind": f"#tpu.reduction_kind<{which}>"}
    return ctx.emit("tpu.reduce_index", [x], [kind], **how)[0]


def _place_of_int(ctx: Any, x: Value, most: Value, axis: int) -> Value:
    """The first place at which the element is the extremum."""
    own = shape_of_value(x)
    kept = reshape(ctx, most, [1 if d == axis else n for d, n in enumerate(own)])
    every = kept if kept.type == x.type else ctx.one("vector.broadcast", [kept], x.type)
    places = iota(ctx, own, axis)
    chosen = [compare(ctx, "EQ", x, every), places, constant_like(ctx, own[axis], places)]
    return reduced(ctx, "stablehlo.minimum", ctx.one("arith.select", chosen, places.type), [axis])


REDUCTIONS: dict[str, Rule] = {"stablehlo.reduce": _reduce}
