"""The call of a kernel from a program: a custom call for the target, with the kernel's own module inside."""
from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from xlamini.core.errors import ShardingError
from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.kernels import Kernel

if TYPE_CHECKING:  # which imports this file
    from xlamini.lowering.context import Context, Value


def kernel_call(ctx: Context, kernel: Kernel, operands: Sequence[Value]) -> list[Value]:
    """The results of a kernel, whose program has been expanded."""
    _check_placed(ctx, kernel)
    _check_sizes(kernel)
    dialect = "mosaic" if ctx.platform == "tpu" else "triton"
    emitter = import_module(f"xlamini.lowering.kernels.{dialect}_call")  # each loads its dialect's bindings
    return emitter.emit_call(ctx, kernel, operands)


def name_of_block(kernel: Kernel, i: int) -> str:
    """The name of a block's array for messages."""
    return f"operand {i}" if i < kernel.num_inputs else f"result {i - kernel.num_inputs}"


def _check_sizes(kernel: Kernel) -> None:
    """KernelError for a block without elements, which no target has, unless there are no programs to see it."""
    for i, block in enumerate(kernel.blocks):
        if kernel.programs and 0 in (*block.sizes, *block.array.shape):
            kind = block.array.str_short(short_dtypes=False)
            raise KernelError(
                f"pallas_call: {kernel.name}: {name_of_block(kernel, i)} is {kind}, without elements, of which a "
                "kernel on a TPU or a GPU has no block; leave the call out for it"
            )


def _check_placed(ctx: Context, kernel: Kernel) -> None:
    """ShardingError where the compiler would have to split the operands: it knows nothing of kernels."""
    module = ctx.module
    if module.spans_devices and not set(module.mesh.axis_names) <= set(module.manual_axes):
        raise ShardingError(
            f"pallas_call: {kernel.name} runs in a program for {module.device_count} devices, over which the compiler "
            "cannot split a kernel; call it inside shard_map, on the shards of each device"
        )
