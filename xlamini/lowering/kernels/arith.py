"""Elementwise StableHLO operations in the dialects `arith` and `math`, which Triton and Mosaic share."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.lowering.context import Value
from xlamini.lowering.kernels.context import KernelContext, Regions, Rule, constant_like

_BY_KIND = {
    "stablehlo.add": ("arith.addf", "arith.addi", "arith.addi"),
    "stablehlo.subtract": ("arith.subf", "arith.subi", "arith.subi"),
    "stablehlo.multiply": ("arith.mulf", "arith.muli", "arith.muli"),
    "stablehlo.divide": ("arith.divf", "arith.divsi", "arith.divui"),
    "stablehlo.remainder": ("arith.remf", "arith.remsi", "arith.remui"),
    "stablehlo.maximum": ("arith.maximumf", "arith.maxsi", "arith.maxui"),
    "stablehlo.minimum": ("arith.minimumf", "arith.minsi", "arith.minui"),
    "stablehlo.and": ("", "arith.andi", "arith.andi"),
    "stablehlo.or": ("", "arith.ori", "arith.ori"),
    "stablehlo.xor": ("", "arith.xori", "arith.xori"),
    "stablehlo.shift_left": ("", "arith.shli", "arith.shli"),
    "stablehlo.shift_right_logical": ("", "arith.shrui", "arith.shrui"),
    "stablehlo.shift_right_arithmetic": ("", "arith.shrsi", "arith.shrsi"),
    "stablehlo.power": ("math.powf", "math.ipowi", "math.ipowi"),
    "stablehlo.abs": ("math.absf", "math.absi", ""),
    "stablehlo.atan2": ("math.atan2", "", ""),
}
"""By the name of the StableHLO operation: that on floats, on integers, and on unsigned integers."""

_OF_FLOATS = {
    "stablehlo.exponential": "math.exp",
    "stablehlo.exponential_minus_one": "math.expm1",
    "stablehlo.log": "math.log",
    "stablehlo.log_plus_one": "math.log1p",
    "stablehlo.sine": "math.sin",
    "stablehlo.cosine": "math.cos",
    "stablehlo.tan": "math.tan",
    "stablehlo.tanh": "math.tanh",
    "stablehlo.sqrt": "math.sqrt",
    "stablehlo.rsqrt": "math.rsqrt",
    "stablehlo.cbrt": "math.cbrt",
    "stablehlo.floor": "math.floor",
    "stablehlo.ceil": "math.ceil",
    "stablehlo.round_nearest_even": "math.roundeven",
    "stablehlo.round_nearest_afz": "math.round",
}

_COMPARISONS = {  # the number of arith's predicate for ordered floats, signed and unsigned integers
    "EQ": (1, 0, 0),
    "NE": (13, 1, 1),
    "LT": (4, 2, 6),
    "LE": (5, 3, 7),
    "GT": (2, 4, 8),
    "GE": (3, 5, 9),
}


def is_float(x: Value | ir.Type) -> bool:
    """Whether a value, or a type, is of floats."""
    kind = x if isinstance(x, ir.Type) else x.type
    return isinstance(element_of(kind), ir.FloatType)


def element_of(kind: Any) -> ir.Type:
    """The type of the elements; of a scalar, its own."""
    return kind.element_type if hasattr(kind, "element_type") else kind


def _elementwise(floats: str, ints: str, unsigned: str) -> Rule:
    def rule(
        ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Any
    ) -> Value:
        name = floats if is_float(operands[0]) else unsigned if ctx.is_unsigned() else ints
        return ctx.one(name, operands, types[0])

    return rule


def _negate(ctx: KernelContext, operands: Sequence[Value], types: Any, regions: Any, attributes: Any) -> Value:
    (x,) = operands
    if is_float(x):
        return ctx.one("arith.negf", [x])
    return ctx.one("arith.subi", [constant_like(ctx, 0, x), x])


def _not(ctx: KernelContext, operands: Sequence[Value], types: Any, regions: Any, attributes: Any) -> Value:
    (x,) = operands
    ones = 1 if ir.IntegerType(element_of(x.type)).width == 1 else -1
    return ctx.one("arith.xori", [x, constant_like(ctx, ones, x)])


def _logistic(ctx: KernelContext, operands: Sequence[Value], types: Any, regions: Any, attributes: Any) -> Value:
    (x,) = operands
    one = constant_like(ctx, 1.0, x)
    below = ctx.one("arith.addf", [one, ctx.one("math.exp", [ctx.one("arith.negf", [x])])])
    return ctx.one("arith.divf", [one, below])


def _sign(ctx: KernelContext, operands: Sequence[Value], types: Any, regions: Any, attributes: Any) -> Value:
    (x,) = operands
    zero, one, less = (constant_like(ctx, n, x) for n in (0, 1, -1))
    negative = ctx.one("arith.select", [compare(ctx, "LT", x, zero), less, x], x.type)
    return ctx.one("arith.select", [compare(ctx, "GT", x, zero), one, negative], x.type)


def _select(ctx: KernelContext, operands: Sequence[Value], types: Any, regions: Any, attributes: Any) -> Value:
    return ctx.one("arith.select", operands, operands[1].type)


def _clamp(ctx: KernelContext, operands: Sequence[Value], types: Any, regions: Any, attributes: Any) -> Value:
    low, x, high = operands
    larger = ctx.many("stablehlo.maximum", [low, x], [x.type])[0]
    return ctx.many("stablehlo.minimum", [larger, high], [x.type])[0]


def _compare(
    ctx: KernelContext, operands: Sequence[Value], types: Any, regions: Any, attributes: Mapping[str, Any]
) -> Value:
    direction = attributes["comparison_direction"].removesuffix(">").split()[-1]
    return compare(ctx, direction, *operands)


def compare(ctx: KernelContext, direction: str, x: Value, y: Value) -> Value:
    """The comparison of two values, by the direction's name in StableHLO."""
    floats, ints, unsigned = _COMPARISONS[direction]
    number = floats if is_float(x) else unsigned if ctx.is_unsigned() else ints
    kind = ctx.mlir.bools_like(x.type)
    return ctx.one("arith.cmpf" if is_float(x) else "arith.cmpi", [x, y], kind, predicate=f"{number} : i64")


def _convert(ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    (x,), (kind,) = operands, types
    if x.type == kind:
        return x
    source, target = element_of(x.type), element_of(kind)
    if is_float(source) and is_float(target) and ir.FloatType(source).width == ir.FloatType(target).width:
        x = ctx.one("arith.extf", [x], ctx.mlir.floats_like(kind))  # of one width: by float32
        source = element_of(x.type)
    return ctx.one(_conversion(ctx, source, target), [x], kind)


def _conversion(ctx: KernelContext, source: ir.Type, target: ir.Type) -> str:
    unsigned = ctx.is_unsigned()
    if is_float(source) and is_float(target):
        return "arith.extf" if ir.FloatType(target).width > ir.FloatType(source).width else "arith.truncf"
    if is_float(source):
        return "arith.fptosi"
    if is_float(target):
        return "arith.uitofp" if unsigned else "arith.sitofp"
    if ir.IntegerType(target).width < ir.IntegerType(source).width:
        return "arith.trunci"
    return "arith.extui" if unsigned else "arith.extsi"


def _bitcast(ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    return ctx.one("arith.bitcast", operands, types[0])


def _return(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> list[Value]:
    state = ctx.insertion.block.arguments if ctx.ends == "scf.condition" else ()  # which the body takes
    return ctx.emit(ctx.ends, [*operands, *state], [])


ELEMENTWISE: dict[str, Rule] = {
    **{name: _elementwise(*names) for name, names in _BY_KIND.items()},
    **{name: _elementwise(floats, "", "") for name, floats in _OF_FLOATS.items()},
    "chlo.erf": _elementwise("math.erf", "", ""),
    "stablehlo.negate": _negate,
    "stablehlo.not": _not,
    "stablehlo.logistic": _logistic,
    "stablehlo.sign": _sign,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.return": _return,
}
