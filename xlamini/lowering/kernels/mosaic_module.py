"""The module of a Mosaic kernel: its function, and one function for each index map."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import ShapedArray
from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.kernels import Block, Element, Kernel, Squeezed
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.context import KernelModule
from xlamini.lowering.kernels.mosaic import MosaicContext
from xlamini.lowering.kernels.mosaic_blocks import check_blocks
from xlamini.lowering.kernels.mosaic_dialect import MosaicDialect
from xlamini.lowering.kernels.mosaic_memory import MosaicRef, ref_of

_INT32 = np.dtype(np.int32)
COPIED_BY_HAND = ("any", "hbm")


def grid_of(kernel: Kernel) -> tuple[int, ...]:
    """The grid; one without axes is of one program."""
    return kernel.grid or (1,)


def space_of(block: Block) -> str:
    """The memory that a block is in; scalars are in SMEM unless the user says otherwise."""
    return block.memory_space or ("vmem" if block.array.shape else "smem")


def kernel_module(mlir: MosaicDialect, kernel: Kernel) -> ir.Module:
    """The kernel's module.

    KernelError for an operation that Mosaic does not have, or a block that it refuses.
    """
    check_blocks(kernel)
    module = ir.Module.create(mlir.unknown)
    emitter = Emitter(mlir, kernel, module)
    emitter.function("main", emitter.types(), emitter.write_kernel, emitter.attributes())
    for i, block in enumerate(kernel.blocks):
        if space_of(block) not in COPIED_BY_HAND:
            emitter.transform(i, block)
    return module


class Emitter:
    """The functions of one kernel's module."""

    kernel: Kernel
    mlir: MosaicDialect
    module: ir.Module

    def __init__(self, mlir: MosaicDialect, kernel: Kernel, module: ir.Module):
        self.mlir, self.kernel, self.module = mlir, kernel, module
        self.grid: list[ir.Type] = [mlir.element_type(_INT32)] * len(grid_of(kernel))
        refs = kernel.refs()
        count = kernel.num_prefetch
        self.prefetch: list[Any] = [v.aval for v in refs[:count]]
        self.scratch: list[Any] = [v.aval for v in refs[count + len(kernel.blocks) :]]

    def types(self) -> list[ir.Type]:
        """The types of the kernel's arguments."""
        blocks = [self.mlir.memory(_buffer_shape(b), b.array.dtype, space_of(b)) for b in self.kernel.blocks]
        return [*self.grid, *map(self._of_scalars, self.prefetch), *blocks, *map(self._of_scratch, self.scratch)]

    def _of_scalars(self, aval: ShapedArray) -> ir.Type:
        return self.mlir.memory(aval.shape or (1,), aval.dtype, "smem")

    def _of_scratch(self, aval: Any) -> ir.Type:
        return self.mlir.memory(aval.shape or (1,), aval.dtype, aval.kind or "vmem")

    def function(
        self, name: str, types: Sequence[ir.Type], write: Callable[..., Sequence[Value]], attributes: dict[str, str]
    ) -> None:
        """Add a function whose body `write(ctx, *arguments)` emits; it returns the results."""
        attributes = {"sym_name": f'"{name}"', **attributes}
        attrs = {key: self.mlir.parse(text) for key, text in attributes.items()}
        made = ir.Operation.create("func.func", [], [], attrs, None, 1, self.mlir.unknown, False)
        block = made.regions[0].blocks.append(*types, arg_locs=[self.mlir.unknown] * len(types))
        ctx = MosaicContext(KernelModule("tpu"), self.mlir, block, self.kernel.name)
        results = write(ctx, *block.arguments)
        ctx.emit("func.return", results, [])
        kind = ir.FunctionType.get(list(types), [x.type for x in results], self.mlir.context)
        made.attributes["function_type"] = ir.TypeAttr.get(kind, self.mlir.context)
        self.module.body.append(made)

    def write_kernel(self, ctx: MosaicContext, *arguments: Value) -> list[Value]:
        """Emit the kernel's equations."""
        first = len(self.grid)
        ids, buffers = arguments[: len(self.kernel.grid)], iter(arguments[first:])
        refs = [
            *(_whole_ref(next(buffers), aval, "smem") for aval in self.prefetch),
            *(_block_ref(next(buffers), block) for block in self.kernel.blocks),
            *(_whole_ref(next(buffers), aval, aval.kind or "vmem") for aval in self.scratch),
        ]
        return ctx.run(self.kernel.jaxpr, [*ids, *refs])

    def transform(self, i: int, block: Block) -> None:
        """Add the function of an index map."""

        def write(ctx: MosaicContext, *arguments: Value) -> list[Value]:
            first = len(self.grid)
            refs = [_whole_ref(x, a, "smem") for x, a in zip(arguments[first:], self.prefetch, strict=True)]
            found = ctx.run(block.index_map, [*arguments[: len(self.kernel.grid)], *refs])
            return found or [ctx.index(0)]

        self.function(f"transform_{i}", [*self.grid, *map(self._of_scalars, self.prefetch)], write, {})

    def attributes(self) -> dict[str, str]:
        """What the compiler has to know of the grid and the blocks."""
        kernel = self.kernel
        semantics = [f"#tpu.dimension_semantics<{name}>" for name in _semantics(kernel)]
        windows = [_window_params(i, block) for i, block in enumerate(kernel.blocks)]
        return {
            "dimension_semantics": f"[{', '.join(semantics)}]",
            "iteration_bounds": f"array<i64: {', '.join(map(str, grid_of(kernel)))}>",
            "scalar_prefetch": f"{kernel.num_prefetch} : i64",
            "scratch_operands": f"{kernel.num_scratch} : i64",
            "tpu.core_type": "#tpu.core_type<tc>",
            "window_params": f"[{', '.join(windows)}]",
        }


def _semantics(kernel: Kernel) -> list[str]:
    """How the programs along each axis depend on one another; axes that vmap added in front are parallel."""
    said = getattr(kernel.compiler_params, "dimension_semantics", None)
    rank = len(grid_of(kernel))
    if said is None:
        return ["arbitrary"] * rank
    if len(said) > rank:
        raise KernelError(
            f"pallas_call: {kernel.name}: dimension_semantics has {len(said)} entries for a grid of {rank} axes; "
            "give one for each axis"
        )
    return [*["parallel"] * (rank - len(said)), *said]


def _window_params(i: int, block: Block) -> str:
    if space_of(block) in COPIED_BY_HAND:
        return "{}"
    bounds = ", ".join(map(str, _buffer_shape(block)))
    parts = [f"transform_indices = @transform_{i}", f"window_bounds = array<i64: {bounds}>"]
    if any(isinstance(d, Element) for d in block.dims):
        parts.append(f"window_kind = {_element_window(block)}")
    if mode := _pipeline_mode(block):
        parts.append(f"pipeline_mode = #tpu.pipeline_mode<{mode}>")
    return f"{{{', '.join(parts)}}}"


def _element_window(block: Block) -> str:
    if not all(isinstance(d, Element | Squeezed) for d in block.dims):
        raise KernelError(
            f"pallas_call: the block {block.sizes} mixes Element with other dimensions, which a TPU cannot; write "
            "Element(size) for each dimension, with an index map that counts elements"
        )
    low, high = zip(*(getattr(d, "padding", (0, 0)) for d in block.dims), strict=True)
    return f"#tpu.element_window<{list(low)},{list(high)}>"


def _pipeline_mode(block: Block) -> str | None:
    """One buffer for a block that is the whole array, as it is copied once; else two, unless the user says one."""
    if block.is_whole and space_of(block) == "vmem":
        return "synchronous"
    count = getattr(block.pipeline_mode, "buffer_count", None)
    if count is None:
        return None
    if count not in (1, 2):
        raise KernelError(f"pallas_call: a block has one or two buffers, got Buffered({count}); write Buffered(2)")
    return "synchronous" if count == 1 else "double_buffered"


def _buffer_shape(block: Block) -> tuple[int, ...]:
    return (block.array.shape if space_of(block) in COPIED_BY_HAND else block.sizes) or (1,)


def _block_ref(buffer: Value, block: Block) -> MosaicRef:
    squeezed = [type(d) is Squeezed for d in block.dims]
    return ref_of(buffer, _buffer_shape(block) if block.dims else (), squeezed, block.array.dtype, space_of(block))


def _whole_ref(buffer: Value, aval: ShapedArray, space: str) -> MosaicRef:
    return ref_of(buffer, aval.shape, [False] * aval.ndim, aval.dtype, space)
