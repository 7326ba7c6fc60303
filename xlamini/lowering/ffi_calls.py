"""FFI custom calls: kernels outside XLA, called by name: `lapack_spotrf_ffi`, `cusolver_getrf_ffi`, ….

A kernel takes column-major matrices, with batch dimensions in front; its typed attributes are written from NumPy
scalars. The kernel of a primitive is chosen in its `lower` rule.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core import Avals, Shape
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.lowering.context import Context, Value
from xlamini.lowering.ffi_attributes import dictionary, quoted
from xlamini.lowering.sharding_rules import batch_rule
from xlamini.runtime.devices.ffi_targets import partition_along_batch, require_target

Layout = Sequence[int]
"""The dimensions of an array, minor one first."""

TYPED = 4
"""The version of custom calls with typed attributes, in the numbers of StableHLO."""

_PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_COMPLEX = {pair[:2]: pair[3:] for pair in ("or un", "sy he")}
"""Prefixes of function names for complex dtypes: orthogonal becomes unitary, symmetric becomes Hermitian."""


def lapack(name: str, dtype: Any) -> str:
    """The call target of a LAPACK function for a dtype: `lapack("potrf", "float32")` is `lapack_spotrf_ffi`."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        name = _COMPLEX.get(name[:2], name[:2]) + name[2:]
    return f"lapack_{_PREFIXES[dtype.name]}{name}_ffi"


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
    ranks = [v.type.rank for v in operands]
    batch = ranks[0] - 2 if batch_dims is None else batch_dims
    matrix = -1 if row_major else batch + 2
    return custom_call(
        ctx,
        target,
        operands,
        [ctx.mlir.type(a) for a in results],
        config=dictionary(attributes or {}),
        shapes=[a.shape for a in results],
        operand_layouts=[_layout(rank, matrix) for rank in ranks],
        result_layouts=[_layout(a.ndim, matrix) for a in results],
        aliases=aliases,
        **_along_batch(ctx, target, batch, [tuple(v.type.shape) for v in operands], [a.shape for a in results]),
    )


def custom_call(
    ctx: Context,
    target: str,
    operands: Sequence[Value],
    types: Sequence[Any],
    *,
    config: str = "{}",
    shapes: Sequence[Shape] = (),
    operand_layouts: Sequence[Layout] | None = None,
    result_layouts: Sequence[Layout] | None = None,
    aliases: Mapping[int, int] | None = None,
    api_version: int = TYPED,
    has_side_effect: bool = False,
    **attributes: Any,
) -> list[Value]:
    """Call an FFI target; returns the list of its results, of the MLIR types `types`.

    `config` is MLIR's text of the attributes, a dictionary, or of a string for versions of the interface before the
    typed one. Layouts are minor dimension first; None leaves them to XLA. `aliases` is `{result: operand}`. `shapes`
    are those of the results, needed where they have symbolic sizes. Further `attributes` of the operation are MLIR's
    texts.
    """
    require_target(target, ctx.platform)
    rest: dict[str, Any] = _aliasing(aliases or {}, len(types))
    if any(map(is_symbolic_shape, shapes)):
        rest |= _shape_operands(len(operands), len(shapes))
        operands = [*operands, *map(ctx.sizes, shapes)]
        operand_layouts = None if operand_layouts is None else [*operand_layouts, *[[0]] * len(shapes)]
    if operand_layouts is not None and result_layouts is not None:
        rest |= {"operand_layouts": _layouts(operand_layouts), "result_layouts": _layouts(result_layouts)}
    if has_side_effect:
        rest["has_side_effect"] = True
    return ctx.many(
        "stablehlo.custom_call",
        operands,
        types,
        call_target_name=quoted(target),
        api_version=f"{api_version} : i32",
        backend_config=config,
        **rest,
        **attributes,
    )


def _shape_operands(first: int, count: int) -> dict[str, str]:
    """Which operands are the shapes of the results; the refinement of the module takes them away."""
    return {"indices_of_shape_operands": f"dense<{[*range(first, first + count)]}> : tensor<{count}xi64>"}


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
        call_target_name=quoted(target),
        api_version=f"{api_version} : i32",
        backend_config=quoted(config),
    )


def _along_batch(
    ctx: Context, target: str, batch: int, operands: Sequence[Shape], results: Sequence[Shape]
) -> dict[str, Any]:
    """What lets XLA split a call along its batch: without, each device gathers the batch and computes all of it."""
    if not (batch and ctx.module.spans_devices):
        return {}
    partition_along_batch(target)
    rule = batch_rule(operands[0][:batch], operands, results)
    return {"mhlo.frontend_attributes": f'{{num_batch_dims = "{batch}"}}', "sdy.sharding_rule": rule}


def _layout(rank: int, matrix: int) -> Layout:
    """The layout, minor dimension first; an array of rank `matrix` is column-major in its last two dimensions."""
    order = row_major_layout(rank)
    return [order[1], order[0], *order[2:]] if rank == matrix else order


def row_major_layout(rank: int) -> Layout:
    """The layout of NumPy's arrays, minor dimension first."""
    return list(range(rank))[::-1]


def _layouts(layouts: Sequence[Layout]) -> str:
    each = [f"dense<{list(order) or ''}> : tensor<{len(order)}xindex>" for order in layouts]
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
