"""The custom call of a Mosaic kernel: its module in the versioned form that libtpu reads, and what XLA asks of it."""
from __future__ import annotations

import base64
import dataclasses
import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from xlamini.core import ShapedArray
from xlamini.core.program.form import Platform
from xlamini.core.program.kernels import Kernel
from xlamini.lowering.context import Context, Value
from xlamini.lowering.ffi_calls import custom_call, row_major_layout
from xlamini.lowering.kernels.mosaic_dialect import mosaic_dialect
from xlamini.lowering.kernels.mosaic_module import kernel_module
from xlamini.lowering.kernels.verify import verify
from xlamini.lowering.specialize import specialize_part

_VERSION = 11
"""The version of the form; libtpu of each jaxlib that is supported reads it."""

_VMEM = 1
"""XLA's number of the memory that `vmem_limit_bytes` is about."""


def emit_call(ctx: Context, kernel: Kernel, operands: Sequence[Value]) -> list[Value]:
    """The results of a kernel, whose program has been expanded, on a TPU."""
    kernel = dataclasses.replace(kernel, jaxpr=specialize_part(kernel.jaxpr, (Platform("tpu"),)))
    module = kernel_module(mosaic_dialect(), kernel)
    verify(kernel, module, "TPU")
    inside = [_inside(a) for a in kernel.out_avals]
    results = custom_call(
        ctx,
        "tpu_custom_call",
        [_entering(ctx, x, a) for x, a in zip(operands, kernel.operand_avals(), strict=True)],
        [ctx.mlir.type(a) for a in inside],
        config=ir.StringAttr.get(json.dumps(_config(kernel, module)), ctx.mlir.context),  # type: ignore[arg-type]
        operand_layouts=[row_major_layout(len(_inside(a).shape)) for a in kernel.operand_avals()],
        result_layouts=[row_major_layout(len(a.shape)) for a in inside],
        aliases={result: operand for operand, result in kernel.aliases},
        api_version=1,
        has_side_effect=bool(getattr(kernel.compiler_params, "has_side_effects", False)),
        kernel_name=ctx.mlir.string(kernel.name),
    )
    return [_leaving(ctx, x, a) for x, a in zip(results, kernel.out_avals, strict=True)]


def _inside(aval: ShapedArray) -> ShapedArray:
    """The type of an array in the memory of the kernel: bools are int32s, scalars arrays of one element."""
    dtype = np.dtype(np.int32) if aval.dtype == np.bool_ else aval.dtype
    return ShapedArray(aval.shape or (1,), dtype)


def _entering(ctx: Context, x: Value, aval: ShapedArray) -> Value:
    inside = _inside(aval)
    if inside.dtype != aval.dtype:
        x = ctx.op("stablehlo.convert", x, avals=[ShapedArray(aval.shape, inside.dtype)])
    return x if inside.shape == aval.shape else ctx.reshape(x, inside)


def _leaving(ctx: Context, x: Value, aval: ShapedArray) -> Value:
    inside = _inside(aval)
    if inside.shape != aval.shape:
        x = ctx.reshape(x, ShapedArray(aval.shape, inside.dtype))
    if inside.dtype == aval.dtype:
        return x
    wide = ShapedArray(aval.shape, inside.dtype)
    return ctx.op(
        "stablehlo.compare", x, ctx.constant(0, wide), avals=[aval],
        comparison_direction="#stablehlo<comparison_direction NE>",
    )  # fmt: skip


def _config(kernel: Kernel, module: ir.Module) -> dict[str, Any]:
    """What the call says to libtpu, as JSON."""
    params = kernel.compiler_params
    call: dict[str, Any] = {
        "body": base64.b64encode(serialized(module)).decode(),
        "serialization_format": 1,
        "needs_layout_passes": True,
    }
    if kernel.cost_estimate is not None:
        call["cost_estimate"] = kernel.cost_estimate._asdict()
    for name in ("allow_input_fusion", "internal_scratch_in_bytes", "disable_bounds_checks", "skip_device_barrier"):
        if value := getattr(params, name, None):
            call[name] = value
    config: dict[str, Any] = {"custom_call_config": call}
    if limit := getattr(params, "vmem_limit_bytes", None):
        config["scoped_memory_configs"] = [{"memory_space": _VMEM, "offset": 0, "size": limit}]
    return config


def serialized(module: ir.Module) -> bytes:
    """The module in the dialect that keeps its meaning over versions, as bytecode."""
    context, buffer = module.context, io.BytesIO()
    with context, ir.Location.unknown():
        clone = module.operation.clone(ip=False)
        before, context.allow_unregistered_dialects = context.allow_unregistered_dialects, True
        try:
            passes = f"builtin.module(mosaic-serde{{serialize=true target-version={_VERSION}}})"
            PassManager.parse(passes).run(clone)
        finally:
            context.allow_unregistered_dialects = before
        clone.write_bytecode(buffer, desired_version=0)
    return buffer.getvalue()
