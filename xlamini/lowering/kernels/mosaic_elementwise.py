"""Elementwise operations that Mosaic has in 32 bits only, or not at all."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import ELEMENTWISE, compare, element_of, is_float
from xlamini.lowering.kernels.context import Regions, Rule, constant_like
from xlamini.lowering.kernels.mosaic_shapes import is_bool, shape_of_value

_OF_FLOAT32 = {"stablehlo.remainder", "stablehlo.atan2"}
_AS_FLOATS = {"stablehlo.maximum", "stablehlo.minimum"}  # which Mosaic would narrow again if they were of ints
_LACKS = {"stablehlo.cbrt"}
_OF_BOOLS = {"stablehlo.maximum": "arith.ori", "stablehlo.minimum": "arith.andi"}
_OF_BITS = {"stablehlo.shift_right_logical", "stablehlo.popcnt", "stablehlo.count_leading_zeros"}
_AS_THEY_ARE = {"stablehlo.return", "stablehlo.convert", "stablehlo.select", "stablehlo.bitcast_convert"}


def _in_words(name: str, rule: Rule) -> Rule:
    """The rule, applied to narrow ints, and to narrow floats where it must be, as to 32 bits."""

    def on_any(
        ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping[str, Any]
    ) -> Any:
        if name in _OF_BOOLS and is_bool(operands[0]):
            return ctx.one(_OF_BOOLS[name], operands)
        if not _is_narrow(operands[0], name in _OF_FLOAT32):
            return rule(ctx, operands, types, regions, attributes)
        words = _words(ctx, name, operands)
        kind = types[0] if name == "stablehlo.compare" else words[0].type
        return ctx.converted(rule(ctx, words, [kind], regions, attributes), types[0])

    return on_any


def _words(ctx: Any, name: str, operands: Sequence[Value]) -> list[Value]:
    """Operands in 32 bits; those of a logical shift, and of a count of bits, have zeros in front."""
    if name in _OF_BITS:
        return [ctx.one("arith.extui", [x], ctx.mlir.vector(shape_of_value(x), ctx.int32)) for x in operands]
    words = list(map(ctx.word, operands))
    return [ctx.converted(x, ctx.float32) for x in words] if name in _AS_FLOATS else words


def _is_narrow(x: Value, floats: bool) -> bool:
    """Whether the elements are ints that must be widened, or floats: scalars and those of 8 bits always."""
    element = element_of(x.type)
    if is_float(element):
        width = ir.FloatType(element).width
        return width < 32 and (floats or width == 8 or not shape_of_value(x))
    return 1 < ir.IntegerType(element).width < 32


def _compare(
    ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping[str, Any]
) -> Value:
    """Mosaic has no `!=` of floats that is true for NaN, so it is the contrary of `==`; bools it cannot compare."""
    direction = attributes["comparison_direction"].removesuffix(">").split()[-1]
    if is_bool(operands[0]):
        return _compare_bools(ctx, direction, *operands)
    if direction != "NE" or not is_float(operands[0]):
        return compare(ctx, direction, *operands)
    return _contrary(ctx, compare(ctx, "EQ", *operands))


def _compare_bools(ctx: Any, direction: str, x: Value, y: Value) -> Value:
    if direction in ("EQ", "NE"):
        differ = ctx.one("arith.xori", [x, y])
        return differ if direction == "NE" else _contrary(ctx, differ)
    smaller, larger = (x, y) if direction in ("LT", "LE") else (y, x)
    return ctx.one("arith.andi" if direction in ("LT", "GT") else "arith.ori", [_contrary(ctx, smaller), larger])


def _contrary(ctx: Any, x: Value) -> Value:
    return ctx.one("arith.xori", [x, constant_like(ctx, 1, x)])


def _is_finite(ctx: Any, operands: Sequence[Value], *_: Any) -> Value:
    x = ctx.one("math.absf", operands)
    return compare(ctx, "LT", x, constant_like(ctx, float("inf"), x))


def _expm1(ctx: Any, operands: Sequence[Value], *_: Any) -> Value:
    return ctx.in_words(_expm1_of_float32, operands[0])


def _expm1_of_float32(ctx: Any, x: Value) -> Value:
    """By tanh(x / 2) = t: 2 t / (1 - t), which is exact near 0; exp(x) - 1 far from it, where t is 1."""
    half, one, two = (constant_like(ctx, n, x) for n in (0.5, 1.0, 2.0))
    t = ctx.one("math.tanh", [ctx.one("arith.mulf", [x, half])])
    near = ctx.one("arith.divf", [ctx.one("arith.mulf", [two, t]), ctx.one("arith.subf", [one, t])])
    far = ctx.one("arith.subf", [ctx.one("math.exp", [x]), one])
    is_near = compare(ctx, "LT", ctx.one("math.absf", [x]), half)
    return ctx.one("arith.select", [is_near, near, far], x.type)


def _convert(
    ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping[str, Any]
) -> Value:
    """A float becomes a narrow int by way of int32, as 200 is no int8, but the bits of a uint8 are its last ones."""
    (x,), (kind,) = operands, types
    if not is_float(x) or is_float(kind):
        return ELEMENTWISE["stablehlo.convert"](ctx, operands, types, regions, attributes)
    words = ctx.mlir.vector(shape_of_value(kind), ctx.int32)
    width = ir.IntegerType(element_of(kind)).width
    if width < 32:
        return ctx.one("arith.trunci", [ctx.one("arith.fptosi", [x], words)], kind)
    return _to_uint32(ctx, x, kind) if ctx.aval_out.dtype == np.uint32 else ctx.one("arith.fptosi", [x], kind)


def _to_uint32(ctx: Any, x: Value, kind: ir.Type) -> Value:
    """From 2**31 on, the integer of what is above that, and the first bit."""
    x = ctx.converted(x, ctx.float32)
    edge = constant_like(ctx, 2.0**31, x)
    above = ctx.one("arith.fptosi", [ctx.one("arith.subf", [x, edge])], kind)
    large = ctx.one("arith.xori", [above, constant_like(ctx, 1 << 31, above)])
    return ctx.one("arith.select", [compare(ctx, "GE", x, edge), large, ctx.one("arith.fptosi", [x], kind)], kind)


def _leading_zeros(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    """Narrow ints have been widened, which adds zeros in front."""
    count = ctx.one("math.ctlz", operands)
    added = 32 - 8 * ctx.aval_out.dtype.itemsize
    return count if added == 0 else ctx.one("arith.subi", [count, constant_like(ctx, added, count)])


def _erfc(ctx: Any, operands: Sequence[Value], *_: Any) -> Value:
    """1 - erf(x), as exact as 1 is: far above 0 it is 0."""
    (x,) = operands
    return ctx.one("arith.subf", [constant_like(ctx, 1.0, x), ctx.one("math.erf", [x])])


def _same(ctx: Any, operands: Sequence[Value], *_: Any) -> list[Value]:
    return list(operands)


def _named(name: str) -> Rule:
    return lambda ctx, operands, types, *_: ctx.one(name, operands, types[0])


def _bitcast(ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    shape = shape_of_value(types[0])
    if shape != shape_of_value(operands[0]):
        raise KernelError(f"{ctx.place()}: a TPU's kernel takes bits only as elements of the same width")
    name = "tpu.bitcast" if shape else "arith.bitcast"
    return ctx.one(name, operands, types[0])


_SHARED: dict[str, Rule] = {
    name: rule if name in _AS_THEY_ARE else _in_words(name, rule)
    for name, rule in {**ELEMENTWISE, "stablehlo.compare": _compare}.items()
    if name not in _LACKS
}

MOSAIC_ELEMENTWISE: dict[str, Rule] = {
    **_SHARED,
    "chlo.erfc": _erfc,
    "stablehlo.is_finite": _is_finite,
    "stablehlo.exponential_minus_one": _expm1,
    "stablehlo.optimization_barrier": _same,
    "stablehlo.convert": _convert,
    "stablehlo.popcnt": _in_words("stablehlo.popcnt", _named("math.ctpop")),
    "stablehlo.count_leading_zeros": _in_words("stablehlo.count_leading_zeros", _leading_zeros),
    "stablehlo.bitcast_convert": _bitcast,
}
