"""bitcast_convert_type to another width for shapes with symbolic sizes, by shifts.

XLA finds the shape of a `bitcast_convert` from its operand's only where the widths are equal.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapedArray


def bitcast_by_shifts(ctx: Any, x: Any, old: int, new: int) -> Any:
    """The current equation's operand, of elements of `old` bits, with elements of `new` bits."""
    given, out = ctx.avals_in[0], ctx.aval_out
    narrow, wide = given.update(dtype=_unsigned(old)), out.update(dtype=_unsigned(new))
    bits = ctx.op("stablehlo.bitcast_convert", x, avals=[narrow])
    made = _joined(ctx, bits, narrow, wide, old) if old < new else _parted(ctx, bits, narrow, wide, new)
    return ctx.op("stablehlo.bitcast_convert", made)


def _parted(ctx: Any, bits: Any, given: ShapedArray, out: ShapedArray, width: int) -> Any:
    """The parts of each element along a new last axis, its lowest bits first."""
    many = out.update(dtype=given.dtype)
    spread = ctx.broadcast(bits, range(given.ndim), many)
    shifted = ctx.op("stablehlo.shift_right_logical", spread, _places(ctx, many, width), avals=[many])
    return ctx.op("stablehlo.convert", shifted, avals=[out])


def _joined(ctx: Any, bits: Any, given: ShapedArray, out: ShapedArray, width: int) -> Any:
    """The elements along the last axis as parts of one."""
    many, scalar = given.update(dtype=out.dtype), ShapedArray((), out.dtype)
    wide = ctx.op("stablehlo.convert", bits, avals=[many])
    shifted = ctx.op("stablehlo.shift_left", wide, _places(ctx, many, width), avals=[many])
    either = ctx.scalar_region([scalar] * 2, lambda a, b: [ctx.op("stablehlo.or", a, b, avals=[scalar])])
    zero = ctx.constant(0, scalar)
    return ctx.op("stablehlo.reduce", shifted, zero, avals=[out], regions=[either], dimensions=[out.ndim])


def _places(ctx: Any, aval: ShapedArray, width: int) -> Any:
    """The lowest bit of each part along the last axis."""
    last = ctx.op("stablehlo.iota", avals=[aval], iota_dimension=f"{aval.ndim - 1} : i64")
    return ctx.op("stablehlo.multiply", last, ctx.constant(width, aval), avals=[aval])


def _unsigned(width: int) -> np.dtype:
    return np.dtype(f"u{width // 8}")
