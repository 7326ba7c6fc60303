"""Elementwise operations in Triton's kernels: MLIR's `math` where the compiler takes it, else CUDA's libdevice."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import compare, element_of, is_float
from xlamini.lowering.kernels.context import KernelContext, Rule, constant_like
from xlamini.lowering.kernels.equations import named
from xlamini.lowering.kernels.triton_shapes import like, shape_of

_LIBDEVICE = {
    "stablehlo.tanh": "tanh",
    "stablehlo.tan": "tan",
    "stablehlo.atan2": "atan2",
    "stablehlo.cbrt": "cbrt",
    "stablehlo.exponential_minus_one": "expm1",
    "stablehlo.log_plus_one": "log1p",
    "stablehlo.power": "pow",
    "stablehlo.remainder": "fmod",
    "stablehlo.round_nearest_afz": "round",
    "stablehlo.round_nearest_even": "rint",
    "chlo.acos": "acos",
    "chlo.acosh": "acosh",
    "chlo.asin": "asin",
    "chlo.asinh": "asinh",
    "chlo.atan": "atan",
    "chlo.atanh": "atanh",
    "chlo.cosh": "cosh",
    "chlo.erfc": "erfc",
    "chlo.erf_inv": "erfinv",
    "chlo.lgamma": "lgamma",
    "chlo.next_after": "nextafter",
    "chlo.sinh": "sinh",
}
"""By the operation's name: the function of doubles in libdevice; that of floats ends with an f."""

_MATH = {
    "stablehlo.exponential": "exp",
    "stablehlo.log": "log",
    "stablehlo.sine": "sin",
    "stablehlo.cosine": "cos",
    "stablehlo.sqrt": "sqrt",
    "stablehlo.rsqrt": "rsqrt",
    "stablehlo.floor": "floor",
    "stablehlo.ceil": "ceil",
    "chlo.erf": "erf",
}


def extern(ctx: KernelContext, symbol: str, operands: Sequence[Value], kind: ir.Type | None = None) -> Value:
    """A function of libdevice, of each element."""
    text = f'"{symbol}"'
    return ctx.one("tt.extern_elementwise", operands, kind, libname='""', libpath='""', symbol=text, pure=True)


def in_floats(ctx: KernelContext, compute: Any, operands: Sequence[Value]) -> Value:
    """The result of `compute(*operands)`, of halves in float32."""
    kind = operands[0].type
    width = ir.FloatType(element_of(kind)).width
    if width >= 32:
        return compute(*operands)
    wide = like(ctx, ctx.mlir.element_type(np.dtype(np.float32)), shape_of(kind))
    out = compute(*[ctx.one("arith.extf", [x], wide) for x in operands])
    return ctx.one("arith.truncf", [out], kind)


def _by_libdevice(name: str) -> Rule:
    def rule(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> Value:
        if not is_float(operands[0]):
            return _of_integers(ctx, name, operands)
        return in_floats(ctx, lambda *xs: extern(ctx, _symbol(name, xs[0]), xs), operands)

    return rule


def _symbol(name: str, x: Value) -> str:
    return f"__nv_{name}{'' if ir.FloatType(element_of(x.type)).width == 64 else 'f'}"


def _of_integers(ctx: KernelContext, name: str, operands: Sequence[Value]) -> Value:
    if name == "fmod":
        return ctx.one("arith.remui" if ctx.is_unsigned() else "arith.remsi", operands)
    raise KernelError(f"{named(ctx.eqn)} has no form for integers in a GPU's kernel; convert to float32 first")


def _by_math(name: str) -> Rule:
    def rule(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> Value:
        return in_floats(ctx, lambda x: ctx.one(f"math.{name}", [x]), operands)

    return rule


def _logistic(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> Value:
    def compute(x: Value) -> Value:
        one = constant_like(ctx, 1.0, x)
        return ctx.one("arith.divf", [one, ctx.one("arith.addf", [one, ctx.one("math.exp", [_negative(ctx, x)])])])

    return in_floats(ctx, compute, operands)


def approx_tanh(ctx: KernelContext, x: Value) -> Value:
    """The instruction for tanh; doubles have none."""
    if ir.FloatType(element_of(x.type)).width == 64:
        return extern(ctx, "__nv_tanh", [x])
    return in_floats(ctx, lambda y: _assembly(ctx, "tanh.approx.f32 $0, $1;", y), [x])


def _assembly(ctx: KernelContext, text: str, x: Value) -> Value:
    """An instruction from a float to a float, of each element."""
    how = {"asm_string": f'"{text}"', "constraints": '"=f,f"', "pure": True, "packed_element": "1 : i32"}
    return ctx.one("tt.elementwise_inline_asm", [x], **how)


def _negative(ctx: KernelContext, x: Value) -> Value:
    return ctx.one("arith.subf", [constant_like(ctx, 0.0, x), x])


def _divide(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> Value:
    """Halves are divided in float32: the compiler has no division of them, and ends the process."""
    if is_float(operands[0]):
        return in_floats(ctx, lambda *xs: ctx.one("arith.divf", xs), operands)
    return ctx.one("arith.divui" if ctx.is_unsigned() else "arith.divsi", operands)


def _is_finite(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> Value:
    (x,) = operands
    return compare(ctx, "LT", ctx.one("math.absf", [x]), constant_like(ctx, float("inf"), x))


def _convert(ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    (x,), (kind,) = operands, types
    source, target = element_of(x.type), element_of(kind)
    if source == target:
        return x
    if is_float(source) and is_float(target):
        return _float_to_float(ctx, x, kind)
    if 8 in [ir.FloatType(t).width for t in (source, target) if is_float(t)]:
        wide = like(ctx, ctx.mlir.element_type(np.dtype(np.float32)), shape_of(kind))
        return _through(ctx, x, wide, kind)
    return ctx.one(_conversion(ctx, source, target), [x], kind)


def _through(ctx: KernelContext, x: Value, middle: ir.Type, kind: ir.Type) -> Value:
    return _convert(ctx, [_convert(ctx, [x], [middle])], [kind])


def _float_to_float(ctx: KernelContext, x: Value, kind: ir.Type) -> Value:
    before, after = (ir.FloatType(element_of(t)).width for t in (x.type, kind))
    if before == after or (64 in (before, after) and 8 in (before, after)):
        return _through(ctx, x, like(ctx, ctx.mlir.element_type(np.dtype(np.float32)), shape_of(kind)), kind)
    if 8 in (before, after):
        rounding = {"rounding": "1 : i32"} if after < before else {}
        return ctx.one("tt.fp_to_fp", [x], kind, **rounding)
    return ctx.one("arith.extf" if after > before else "arith.truncf", [x], kind)


def _conversion(ctx: KernelContext, source: ir.Type, target: ir.Type) -> str:
    unsigned = ctx.is_unsigned()
    if is_float(source):
        return "arith.fptoui" if ctx.aval_out.dtype.kind == "u" else "arith.fptosi"
    if is_float(target):
        return "arith.uitofp" if unsigned else "arith.sitofp"
    if ir.IntegerType(target).width < ir.IntegerType(source).width:
        return "arith.trunci"
    return "arith.extui" if unsigned else "arith.extsi"


def _reduce_precision(ctx: KernelContext, operands: Sequence[Value], _: Any, __: Any, attributes: Mapping) -> Value:
    (x,) = operands
    bits = tuple(int(attributes[k].split()[0]) for k in ("exponent_bits", "mantissa_bits"))
    name = {"8, 7": "bf16", "5, 10": "f16"}.get(", ".join(map(str, bits)))
    if name is None:
        raise KernelError(f"{named(ctx.eqn)} rounds to a format that a GPU's kernel does not have; take bfloat16")
    narrow = like(ctx, ir.Type.parse(name, ctx.mlir.context), shape_of(x))
    return _convert(ctx, [_convert(ctx, [x], [narrow])], [x.type])


def _bitcast(ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], *_: Any) -> Value:
    if shape_of(operands[0]) != shape_of(types[0]):
        raise KernelError(f"{named(ctx.eqn)} changes the shape, which a GPU's kernel cannot; take a dtype of one width")
    return ctx.one("tt.bitcast", operands, types[0])


def _of_bits(name: str, double: str) -> Rule:
    """A function of int32 and int64 in libdevice, which returns an int32; narrower ints are extended."""

    def rule(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> Value:
        (x,) = operands
        width = ir.IntegerType(element_of(x.type)).width
        counts = like(ctx, ctx.mlir.element_type(np.dtype(np.int32)), shape_of(x))
        if width == 64:
            return ctx.one("arith.extui", [extern(ctx, f"__nv_{double}", [x], counts)], x.type)
        found = extern(ctx, f"__nv_{name}", [x if width == 32 else ctx.one("arith.extui", [x], counts)], counts)
        if name == "clz" and width < 32:
            found = ctx.one("arith.subi", [found, constant_like(ctx, 32 - width, found)])
        return found if width == 32 else ctx.one("arith.trunci", [found], x.type)

    return rule


def _same(ctx: KernelContext, operands: Sequence[Value], *_: Any) -> list[Value]:
    return list(operands)


MATH: dict[str, Rule] = {
    **{name: _by_libdevice(function) for name, function in _LIBDEVICE.items()},
    **{name: _by_math(function) for name, function in _MATH.items()},
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.convert": _convert,
    "stablehlo.count_leading_zeros": _of_bits("clz", "clzll"),
    "stablehlo.divide": _divide,
    "stablehlo.is_finite": _is_finite,
    "stablehlo.logistic": _logistic,
    "stablehlo.optimization_barrier": _same,
    "stablehlo.popcnt": _of_bits("popc", "popcll"),
    "stablehlo.reduce_precision": _reduce_precision,
}
