"""Types, attributes and constants for lowering rules that write operations, under the names of `jax.interpreters.mlir`.

They are made in the MLIR context of the rule that asks for them.
"""
from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from xlamini.core.program.avals import ShapedArray
from xlamini.lowering.mlir import element_type_text, new_context as make_ir_context


def i32_attr(i: int) -> ir.IntegerAttr:
    """An attribute of 32 bits."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> ir.IntegerAttr:
    """An attribute of 64 bits."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Any) -> ir.DenseIntElementsAttr:
    """An attribute of 64-bit integers as elements."""
    elements: Any = np.asarray(xs, np.int64)
    return ir.DenseIntElementsAttr.get(elements)


def dense_int_array(xs: Any) -> ir.DenseI64ArrayAttr:
    """An attribute of 64-bit integers as an array."""
    return ir.DenseI64ArrayAttr.get(np.asarray(xs, np.int64).tolist())


def ir_attribute(val: Any) -> ir.Attribute:
    """The attribute of a Python value."""
    if isinstance(val, dict):
        return ir.DictAttr.get({name: ir_attribute(inner) for name, inner in val.items()})
    if isinstance(val, list | tuple):
        return ir.ArrayAttr.get([ir_attribute(inner) for inner in val])
    if isinstance(val, bool | np.bool_):
        return ir.BoolAttr.get(bool(val))
    if isinstance(val, int | np.integer):
        return i64_attr(int(val))
    if isinstance(val, float | np.floating):
        return ir.FloatAttr.get_f64(float(val))
    return ir.StringAttr.get(val) if isinstance(val, str) else val


def dtype_to_ir_type(dtype: Any) -> ir.Type:
    """MLIR's type of elements."""
    return ir.Type.parse(element_type_text(np.dtype(dtype)))


def aval_to_ir_type(*ctx_and_aval: Any) -> ir.Type:
    """MLIR's type of an array; a context in front is not needed."""
    aval: ShapedArray = ctx_and_aval[-1]
    return ir.RankedTensorType.get(aval.shape, dtype_to_ir_type(aval.dtype))


def aval_to_ir_types(*ctx_and_aval: Any) -> tuple[ir.Type, ...]:
    """The same, in a tuple."""
    return (aval_to_ir_type(*ctx_and_aval),)


def token_type() -> ir.Type:
    """The type of tokens."""
    return ir.Type.parse("!stablehlo.token")


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> ir.Value[Any]:
    """A constant array."""
    array = np.asarray(val, None if aval is None else aval.dtype)
    if aval is None and array.dtype in (np.int64, np.float64) and isinstance(val, int | float):
        array = array.astype(f"{array.dtype.kind}4")  # a Python number is of 32 bits
    own = array.dtype.isbuiltin == 1  # the bindings do not know the dtypes of ml_dtypes
    bits: Any = np.ascontiguousarray(array if own else array.view(f"u{array.dtype.itemsize}")).reshape(array.shape)
    return stablehlo.constant(ir.DenseElementsAttr.get(bits, type=dtype_to_ir_type(array.dtype), shape=array.shape))


def ir_constants(val: Any, *, const_lowering: Any = None, aval: Any = None) -> tuple[ir.Value[Any], ...]:
    """The same, in a tuple."""
    return (ir_constant(val, aval=aval),)


def shape_tensor(ctx: Any, sizes: Sequence[int]) -> ir.Value[Any]:
    """The sizes as a constant array of 32-bit integers."""
    return ir_constant(np.asarray(sizes, np.int32))


def flatten_ir_values(xs: Iterable[Any]) -> list[Any]:
    """Values, and sequences of values, in one list."""
    return [value for x in xs for value in (x if isinstance(x, list | tuple) else [x])]


flatten_ir_types = flatten_ir_values


def module_to_string(module: ir.Module, enable_debug_info: bool | None = None) -> str:
    """The text of a module."""
    return str(module.operation.get_asm(enable_debug_info=bool(enable_debug_info)))


def module_to_bytecode(module: ir.Module) -> bytes:
    """The bytes of a module."""
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()
