"""The call of a kernel on a GPU: a custom call with the kernel as a module of Triton's dialect inside."""
from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.kernels import Kernel
from xlamini.lowering.context import Context, Value
from xlamini.lowering.ffi_calls import custom_call, row_major_layout
from xlamini.lowering.kernels.calls import name_of_block
from xlamini.lowering.kernels.context import KernelModule
from xlamini.lowering.kernels.triton import TritonContext
from xlamini.lowering.kernels.triton_dialect import TritonDialect, triton_dialect
from xlamini.lowering.kernels.triton_memory import TritonRef, block_ref, whole_ref
from xlamini.lowering.kernels.triton_order import MemoryOrder
from xlamini.lowering.kernels.triton_sizes import check_dtype
from xlamini.lowering.kernels.verify import verify
from xlamini.lowering.specialize import specialize_part

_TARGET = "__gpu$xla.gpu.triton"
_MOST_Y, _MOST_X = 65535, 2**31 - 1
_OF_TPU = ("vmem", "smem", "semaphore", "hbm")
_WARPS, _STAGES = 4, 3


def emit_call(ctx: Context, kernel: Kernel, operands: Sequence[Value]) -> list[Value]:
    """The results of a kernel on a GPU."""
    check_kernel(kernel)
    if not kernel.programs:
        aliased = {output: operands[operand] for operand, output in kernel.aliases}
        return [aliased[i] if i in aliased else ctx.constant(0, aval) for i, aval in enumerate(kernel.out_avals)]
    module = triton_module(kernel, ctx.platform)
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return custom_call(
        ctx,
        _TARGET,
        operands,
        [ctx.mlir.type(aval) for aval in kernel.out_avals],
        config=_config(ctx, kernel, buffer.getvalue()),
        operand_layouts=[row_major_layout(aval.ndim) for aval in kernel.operand_avals()],
        result_layouts=[row_major_layout(aval.ndim) for aval in kernel.out_avals],
        aliases={output: operand for operand, output in kernel.aliases},
    )


def _config(ctx: Context, kernel: Kernel, code: bytes) -> Any:
    params = kernel.compiler_params
    numbers = {
        "num_warps": getattr(params, "num_warps", None) or _WARPS,
        "num_stages": getattr(params, "num_stages", None) or _STAGES,
        **dict(zip(("grid_x", "grid_y", "grid_z"), launch_grid(kernel), strict=True)),
    }
    entries = {k: ctx.mlir.parse(f"{v} : i32") for k, v in numbers.items()}
    entries |= {"name": ctx.mlir.string(_symbol(kernel)), "ir": ctx.mlir.string(code), "debug": ctx.mlir.parse("false")}
    return ir.DictAttr.get(entries, ctx.mlir.context)


def check_kernel(kernel: Kernel) -> None:
    """KernelError for a kernel that asks for what a GPU does not have."""
    if kernel.num_scratch:
        raise KernelError(
            f"pallas_call: {kernel.name} has scratch memory, which kernels on a GPU do not have: their values are in "
            "registers. Carry the values through a fori_loop, or add a result for them"
        )
    for i, block in enumerate(kernel.blocks):
        check_dtype(f"pallas_call: {name_of_block(kernel, i)} of {kernel.name}", block.array.dtype)
        if block.memory_space in _OF_TPU:
            raise KernelError(
                f"pallas_call: {kernel.name} puts {name_of_block(kernel, i)} into {block.memory_space}, a memory of "
                "TPUs; for a GPU leave memory_space out"
            )


def _symbol(kernel: Kernel) -> str:
    return re.sub(r"\W", "_", kernel.name)


# --- the module


def triton_module(kernel: Kernel, platform: str = "cuda") -> ir.Module:
    """The kernel as a module with one function, of pointers to the operands and the results."""
    dialect = triton_dialect()
    module = ir.Module.create(dialect.unknown)
    avals = [*kernel.operand_avals(), *kernel.out_avals]
    block = _function(dialect, module, _symbol(kernel), [dialect.pointer(a.dtype) for a in avals])
    context = TritonContext(KernelModule(platform), dialect, block, kernel.name, "")
    _write(context, kernel, list(block.arguments))
    verify(kernel, module, "GPU")
    return module


def _function(dialect: TritonDialect, module: ir.Module, name: str, pointers: Sequence[ir.Type]) -> ir.Block:
    """The block of a function of the module."""
    kind = f"({', '.join(map(str, pointers))}) -> ()"
    attributes = {
        "sym_name": dialect.string(name),
        "sym_visibility": dialect.string("public"),
        "function_type": dialect.parse(kind),
        "arg_attrs": dialect.parse(f"[{', '.join(['{tt.divisibility = 16 : i32}'] * len(pointers))}]"),
    }
    at = ir.InsertionPoint(module.body)
    made = ir.Operation.create("tt.func", [], [], attributes, None, 1, dialect.unknown, at)
    return made.regions[0].blocks.append(*pointers, arg_locs=[dialect.unknown] * len(pointers))


def _write(ctx: TritonContext, kernel: Kernel, pointers: Sequence[Value]) -> None:
    ids = program_ids(ctx, kernel)
    count, inputs = kernel.num_prefetch, kernel.operand_avals()
    prefetch = [
        whole_ref(f"prefetched scalar {i}", p, a.shape, a.dtype)
        for i, (p, a) in enumerate(zip(pointers[:count], inputs[:count], strict=True))
    ]
    refs = [_block_ref(ctx, kernel, i, p, [*ids, *prefetch]) for i, p in enumerate(pointers[count:])]
    operands = {count + kernel.num_inputs + out: operand for operand, out in kernel.aliases}
    memories = [operands.get(i, i) for i in range(count, count + len(refs))]
    ctx.order = MemoryOrder(set(memories[kernel.num_inputs :]))
    refs = [ref._replace(memory=memory) for ref, memory in zip(refs, memories, strict=True)]
    ctx.run(specialize_part(kernel.jaxpr, ctx.module.platforms), [*ids, *prefetch, *refs])
    ctx.emit("tt.return", [], [])


def _block_ref(ctx: TritonContext, kernel: Kernel, i: int, pointer: Value, inputs: Sequence[Any]) -> TritonRef:
    block = kernel.blocks[i]
    indices = [] if block.is_whole else ctx.run(specialize_part(block.index_map, ctx.module.platforms), inputs)
    return block_ref(ctx, f"pallas_call: {kernel.name}: {name_of_block(kernel, i)}", pointer, block, indices)


# --- the grid


def folded_axes(grid: Sequence[int]) -> int:
    """How many leading axes of the grid are folded into x, as there are three axes, of which y and z are short."""
    axes = max(len(grid) - 2, 1) if len(grid) > 3 else min(len(grid), 1)
    return axes if all(n <= _MOST_Y for n in grid[axes:]) else len(grid)


def launch_grid(kernel: Kernel) -> tuple[int, ...]:
    """The grid as a GPU runs it, of three axes."""
    axes = folded_axes(kernel.grid)
    x = math.prod(kernel.grid[:axes])
    if x > _MOST_X:
        raise KernelError(
            f"pallas_call: {kernel.name} has a grid of {x} programs, more than a GPU runs; take larger blocks"
        )
    return (x, *kernel.grid[axes:], 1, 1)[:3]


def program_ids(ctx: TritonContext, kernel: Kernel) -> list[Value]:
    """The indices of the program in the kernel's grid."""
    if not kernel.grid:
        return []
    axes = folded_axes(kernel.grid)
    kind = ctx.index(0).type
    places = [
        ctx.one("tt.get_program_id", [], kind, axis=f"{axis} : i32") for axis in range(1 + len(kernel.grid) - axes)
    ]
    return [*_unfolded(ctx, places[0], kernel.grid[:axes]), *places[1:]]


def _unfolded(ctx: TritonContext, number: Value, sizes: Sequence[int]) -> list[Value]:
    """The indices of a number of a program, of which the last one is fastest."""
    ids: list[Value] = []
    for size in reversed(sizes[1:]):
        ids.insert(0, ctx.one("arith.remsi", [number, ctx.index(size)]))
        number = ctx.one("arith.divsi", [number, ctx.index(size)])
    return [number, *ids]
