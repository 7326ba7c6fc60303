"""Atomic updates in Triton's dialect."""
from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import element_of, is_float
from xlamini.lowering.kernels.context import KernelContext
from xlamini.lowering.kernels.equations import named
from xlamini.lowering.kernels.triton_memory import PointerPlace, TritonRef, masked, signed_compare
from xlamini.lowering.kernels.triton_shapes import like, shape_of

_OF_INTS = {"and": 1, "or": 2, "xor": 3, "add": 4, "max": 6, "min": 7, "xchg": 10}
_OF_UNSIGNED = {**_OF_INTS, "max": 8, "min": 9}
_FADD = 5
_HOW = {"sem": "4 : i32", "scope": "1 : i32"}  # acquire and release, among all programs of the GPU


def atomic(ctx: KernelContext, ref: TritonRef, place: PointerPlace, operation: str, value: Value) -> Value:
    """Update the elements at a place; returns those before."""
    width = _check_width(ctx, ref, value)
    if not is_float(value):
        table = _OF_UNSIGNED if ref.dtype.kind == "u" else _OF_INTS
        return _rmw(ctx, place, table[operation], value)
    if operation == "add":
        return _rmw(ctx, place, _FADD, value)
    if width < 32:
        raise KernelError(f"{named(ctx.eqn)} updates {ref.dtype.name} by {operation}; a GPU takes float32 or integers")
    bits = _as_bits(ctx, place, width)
    number = ctx.one("tt.bitcast", [value], like(ctx, _integer(ctx, width), place.shape))
    if operation == "xchg":
        return ctx.one("tt.bitcast", [_rmw(ctx, bits, _OF_INTS["xchg"], number)], value.type)
    return _of_ordered_bits(ctx, bits, operation, number, value.type)


def _of_ordered_bits(ctx: KernelContext, bits: PointerPlace, operation: str, number: Value, kind: ir.Type) -> Value:
    """The extremum of floats by that of their bits: signed for positive values, unsigned, the other way, for others."""
    positive = signed_compare(ctx, 5, number, 0)
    negative = signed_compare(ctx, 2, number, 0)
    other = {"max": "min", "min": "max"}[operation]
    upper = _rmw(ctx, masked(ctx, bits, positive), _OF_INTS[operation], number)
    lower = _rmw(ctx, masked(ctx, bits, negative), _OF_UNSIGNED[other], number)
    return ctx.one("tt.bitcast", [ctx.one("arith.select", [positive, upper, lower], upper.type)], kind)


def compare_and_swap(ctx: KernelContext, ref: TritonRef, place: PointerPlace, expected: Value, value: Value) -> Value:
    """Write the value where the element is the expected one; returns the element before."""
    width = _check_width(ctx, ref, value)
    if not is_float(value):
        return ctx.one("tt.atomic_cas", [place.pointers, expected, value], value.type, **_HOW)
    bits, kind = _as_bits(ctx, place, width), like(ctx, _integer(ctx, width), place.shape)
    numbers = [ctx.one("tt.bitcast", [x], kind) for x in (expected, value)]
    found = ctx.one("tt.atomic_cas", [bits.pointers, *numbers], kind, **_HOW)
    return ctx.one("tt.bitcast", [found], value.type)


def _rmw(ctx: KernelContext, place: PointerPlace, number: int, value: Value) -> Value:
    masks = [] if place.mask is None else [place.mask]
    operands = [place.pointers, value, *masks]
    return ctx.one("tt.atomic_rmw", operands, value.type, atomic_rmw_op=f"{number} : i32", **_HOW)


def _check_width(ctx: KernelContext, ref: TritonRef, value: Value) -> int:
    """The number of bits of the elements; KernelError for those that a GPU does not update in one step."""
    element: Any = element_of(value.type)
    width = (ir.FloatType if is_float(value) else ir.IntegerType)(element).width
    if width < (16 if is_float(value) else 32):
        raise KernelError(f"{named(ctx.eqn)} updates {ref.dtype.name}; a GPU updates int32, int64 and floats")
    return width


def _integer(ctx: KernelContext, width: int) -> ir.Type:
    return ctx.mlir.element_type(np.dtype(f"int{width}"))


def _as_bits(ctx: KernelContext, place: PointerPlace, width: int) -> PointerPlace:
    """The place as one of integers of the same bits."""
    dialect: Any = ctx.mlir
    kind = dialect.pointer_to(_integer(ctx, width), shape_of(place.pointers))
    return place._replace(pointers=ctx.one("tt.bitcast", [place.pointers], kind))
