"""Arrays of narrow floats as their bits, which the CPU moves as they are.

XLA's compiler for the CPU computes in a wider dtype what it has no instructions for, and converts all that an operation
reads and gives: the whole array for a `dynamic_update_slice` of one row, in each iteration of a loop. So loops carry
such arrays as unsigned integers, and what moves elements only moves these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapedArray
from xlamini.core.program.form import Platform
from xlamini.lowering.terms import on_terms

Value = Any


def bits_of(platform: Platform, shape: Sequence[int], dtype: str) -> np.dtype | None:
    """The dtype of the bits of an array of bfloat16 or of floats of 8 bits; None for others, and on other platforms.

    `dtype` is its name in NumPy or in MLIR.
    """
    if platform.name != "cpu" or platform.spans_devices or not shape:
        return None
    is_byte = dtype.startswith(("f8", "float8"))
    return np.dtype(np.uint16) if dtype in ("bf16", "bfloat16") else np.dtype(np.uint8) if is_byte else None


def bits_of_value(ctx: Any, x: Value) -> np.dtype | None:
    """`bits_of` for a value that is lowered."""
    if ctx.platform != "cpu":
        return None
    return bits_of(Platform(ctx.platform, ctx.module.spans_devices), x.type.shape, str(x.type.element_type))


def as_bits(ctx: Any, values: Sequence[Value], dtypes: Sequence[np.dtype | None]) -> list[Value]:
    """The values, those of which there are bits as these; `dtypes` are those of the bits."""
    return [_bitcast(ctx, x, dtype) for x, dtype in zip(values, dtypes, strict=True)]


def from_bits(ctx: Any, values: Sequence[Value], types: Sequence[Any]) -> list[Value]:
    """What `as_bits` made of values with these types, as these again."""
    pairs = zip(values, types, strict=True)
    return [x if x.type == kind else ctx.many("stablehlo.bitcast_convert", [x], [kind])[0] for x, kind in pairs]


def moved(ctx: Any, name: str, arrays: Sequence[Value], *others: Value, out: ShapedArray, **attributes: Any) -> Value:
    """`ctx.op` with the arrays, then the others as operands, whose result has elements of the arrays, in bits."""
    bits = bits_of_value(ctx, arrays[0])
    if bits is None:
        return on_terms(ctx, name, *arrays, *others, out=out, **attributes)
    operands = [_bitcast(ctx, x, bits) for x in arrays]
    made = ctx.op(name, *operands, *others, avals=[ShapedArray(out.shape, bits)], **attributes)
    return from_bits(ctx, [made], [ctx.mlir.type(out)])[0]


# --- helpers


def _bitcast(ctx: Any, x: Value, dtype: np.dtype | None) -> Value:
    if dtype is None:
        return x
    kind = type(x.type).get(x.type.shape, ctx.mlir.element_type(dtype), loc=ctx.mlir.unknown)
    return ctx.many("stablehlo.bitcast_convert", [x], [kind])[0]
