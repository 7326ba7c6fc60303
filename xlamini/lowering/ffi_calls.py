"""FFI custom calls: kernels outside XLA, called by name: `lapack_spotrf_ffi`, `cusolver_getrf_ffi`, ….

A kernel takes column-major matrices, with batch dimensions in front; its typed attributes are written from NumPy
scalars. The kernel of a primitive is chosen in its `lower` rule.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core import Avals
from xlamini.lowering.context import Context, Value
from xlamini.lowering.mlir import element_type_text
from xlamini.runtime.devices.ffi_targets import register_kernels

_PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_COMPLEX = {pair[:2]: pair[3:] for pair in ("or un", "sy he")}
"""Prefixes of function names for complex dtypes: orthogonal becomes unitary, symmetric becomes Hermitian."""


def lapack(name: str, dtype: Any) -> str:
    """The call target of a LAPACK function for a dtype: `lapack("potrf", "float32")` is `lapack_spotrf_ffi`."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        name = _COMPLEX.get(name[:2], name[:2]) + name[2:]
    return f"lapack_{_PREFIXES[dtype.name]}{name}_ffi"


def is_gpu(ctx: Context) -> bool:
    """Whether the program is for an NVIDIA GPU."""
    return ctx.platform in ("cuda", "gpu")


def foreign_call(
    ctx: Context,
    target: str,
    operands: Sequence[Value],
    results: Avals,
    *,
    batch_dims: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    aliases: Mapping[int, int] | None = None,
    row_major: bool = False,
) -> list[Value]:
    """Call a kernel through the typed FFI; returns the list of its results.

    Args:
      ctx: the context of the primitive's `lower`.
      target: the kernel's name; `lapack(...)` makes that of a LAPACK function.
      operands: MLIR values.
      results: the types of its results.
      batch_dims: the number of leading batch dimensions of all operands and results; by default all but two of the
        first operand. An array with two dimensions behind them is a matrix, in column-major layout.
      attributes: the attributes by name; NumPy scalars (`np.uint8(ord("L"))`, `np.int32(3)`), bools, or strings.
      aliases: `{result: operand}`, the operand that each result overwrites; XLA copies the operand if necessary.
      row_major: whether matrices are in row-major layout, as NumPy's.
    """
    register_kernels(ctx.platform)
    ranks = [v.type.rank for v in operands]
    batch = ranks[0] - 2 if batch_dims is None else batch_dims
    matrix = -1 if row_major else batch + 2
    aliasing: dict[str, Any] = _aliasing(aliases or {}, len(results))
    return ctx.many(
        "stablehlo.custom_call",
        operands,
        [ctx.mlir.type(a) for a in results],
        call_target_name=f'"{target}"',
        api_version="4 : i32",
        backend_config=_dictionary(attributes or {}),
        operand_layouts=_layouts(ranks, matrix),
        result_layouts=_layouts([a.ndim for a in results], matrix),
        **aliasing,
    )


def xla_call(
    ctx: Context,
    target: str,
    operands: Sequence[Value],
    results: Avals,
    config: str = "",
    api_version: int = 1,
) -> list[Value]:
    """Call a target that XLA itself expands on a TPU, such as `Qr` or `LuDecomposition`; `config` is its text."""
    return ctx.many(
        "stablehlo.custom_call",
        operands,
        [ctx.mlir.type(a) for a in results],
        call_target_name=f'"{target}"',
        api_version=f"{api_version} : i32",
        backend_config=f'"{config}"',
    )


def _dictionary(attributes: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name} = {_attribute(value)}" for name, value in attributes.items()) + "}"


def _attribute(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value.item()!r} : {element_type_text(value.dtype)}"


def _layouts(ranks: Sequence[int], matrix: int) -> str:
    """The layouts, minor dimension first; arrays of rank `matrix` are column-major in their last two dimensions."""
    orders = [list(range(rank))[::-1] for rank in ranks]
    turned = [[order[1], order[0], *order[2:]] if len(order) == matrix else order for order in orders]
    each = [f"dense<{order or ''}> : tensor<{len(order)}xindex>" for order in turned]
    return f"[{', '.join(each)}]"


def _aliasing(aliases: Mapping[int, int], count: int) -> dict[str, str]:
    if not aliases:
        return {}
    each = [
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{result if count > 1 else ''}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for result, operand in aliases.items()
    ]
    return {"output_operand_aliases": f"[{', '.join(each)}]"}
