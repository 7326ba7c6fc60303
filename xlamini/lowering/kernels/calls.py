"""The call of a kernel from a program: a custom call for the target, with the kernel's own module inside."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core.errors import ShardingError
from xlamini.core.program.kernels import Kernel
from xlamini.lowering.context import Context, Value


def kernel_call(ctx: Context, kernel: Kernel, operands: Sequence[Value]) -> list[Value]:
    """The results of a kernel, whose program has been expanded."""
    _check_placed(ctx, kernel)
    if ctx.platform == "tpu":
        from xlamini.lowering.kernels.mosaic_call import mosaic_call

        return mosaic_call(ctx, kernel, operands)
    from xlamini.lowering.kernels.triton_call import triton_call

    return triton_call(ctx, kernel, operands)


def _check_placed(ctx: Context, kernel: Kernel) -> None:
    """ShardingError where the compiler would have to split the operands: it knows nothing of kernels."""
    module = ctx.module
    if module.spans_devices and not set(module.mesh.axis_names) <= set(module.manual_axes):
        raise ShardingError(
            f"pallas_call: {kernel.name} runs in a program for {module.device_count} devices, over which the compiler "
            "cannot split a kernel; call it inside shard_map, on the shards of each device"
        )
