"""The call of a kernel from a program: a custom call for the target, with the kernel's own module inside."""
from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from xlamini.core.errors import ShardingError
from xlamini.core.program.kernels import Kernel

if TYPE_CHECKING:  # which imports this file
    from xlamini.lowering.context import Context, Value


def kernel_call(ctx: Context, kernel: Kernel, operands: Sequence[Value]) -> list[Value]:
    """The results of a kernel, whose program has been expanded."""
    _check_placed(ctx, kernel)
    dialect = "mosaic" if ctx.platform == "tpu" else "triton"
    emitter = import_module(f"xlamini.lowering.kernels.{dialect}_call")  # each loads its dialect's bindings
    return emitter.emit_call(ctx, kernel, operands)


def _check_placed(ctx: Context, kernel: Kernel) -> None:
    """ShardingError where the compiler would have to split the operands: it knows nothing of kernels."""
    module = ctx.module
    if module.spans_devices and not set(module.mesh.axis_names) <= set(module.manual_axes):
        raise ShardingError(
            f"pallas_call: {kernel.name} runs in a program for {module.device_count} devices, over which the compiler "
            "cannot split a kernel; call it inside shard_map, on the shards of each device"
        )
