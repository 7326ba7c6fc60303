"""Reads and writes of refs in Mosaic: whole vectors of VMEM at moving places, and scalars of SMEM."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.ref_parts import Part, PartDim, Start, is_whole, shape_of
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.mosaic_shapes import bits_to_ints, ints_to_bits, reshape


class MosaicRef(NamedTuple):
    """A ref in a kernel: its buffer, and which dimensions of the buffer, of one element, the ref does not have."""

    buffer: Value
    sizes: tuple[int, ...]
    squeezed: tuple[bool, ...]
    dtype: np.dtype
    space: str


class MosaicWindow(NamedTuple):
    """A part of a buffer: where it begins, as values of the type `index`, its sizes and its strides."""

    starts: list[Value]
    sizes: list[int]
    strides: list[int]


_ONE = PartDim(Start(0), 1, 1, True)


def window(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value]) -> MosaicWindow:
    """The part of the buffer that is a part of the ref."""
    each: Any = iter(part)  # without arrays of indices, as `takes_arrays` is False
    dims = [_ONE if squeezed else next(each) for squeezed in ref.squeezed]
    starts = [place(ctx, dim.start, indices) for dim in dims]
    return MosaicWindow(starts, [dim.size for dim in dims], [dim.stride for dim in dims])


def place(ctx: Any, start: Start, indices: Sequence[Value]) -> Value:
    """Where a part begins, of the type `index`; a number is a constant, of which Mosaic knows the tile it is in."""
    if start.terms:
        return ctx.one("arith.index_cast", [ctx.start(start, indices)], ctx.index_type)
    key = "index", start.number
    if key not in ctx.constants:
        ctx.constants[key] = ctx.one("arith.constant", [], ctx.index_type, value=f"{start.number} : index")
    return ctx.constants[key]


def load(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value]) -> Value:
    """The value of a part of a ref."""
    where = window(ctx, ref, part, indices)
    _check_space(ctx, ref, part)
    if ref.space == "smem":
        x = ctx.one("memref.load", [ref.buffer, *where.starts], ctx.mlir.memory_element(ref.dtype))
    else:
        x = reshape(ctx, _vector(ctx, ref, where), shape_of(part))
    return ints_to_bits(ctx, x) if ref.dtype == np.bool_ else x


def _vector(ctx: Any, ref: MosaicRef, where: MosaicWindow) -> Value:
    kind = ctx.mlir.vector(where.sizes, ctx.mlir.memory_element(ref.dtype))
    operands = [ref.buffer, *where.starts]
    if _is_dense(where):
        return ctx.one("vector.load", operands, kind)
    return ctx.one("tpu.strided_load", operands, kind, strides=segments(where.strides))


def _is_dense(where: MosaicWindow) -> bool:
    return all(stride == 1 or size == 1 for stride, size in zip(where.strides, where.sizes, strict=True))


def store(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value], value: Value) -> None:
    """Write a value to a part of a ref."""
    where = window(ctx, ref, part, indices)
    _check_space(ctx, ref, part)
    if ref.dtype == np.bool_:
        value = bits_to_ints(ctx, value)
    if ref.space == "smem":
        ctx.emit("memref.store", [value, ref.buffer, *where.starts], [])
        return
    value = reshape(ctx, value, where.sizes)
    if _is_dense(where):
        counts = segments([1, 1, len(where.starts), 0])
        ctx.emit(
            "tpu.vector_store", [value, ref.buffer, *where.starts], [],
            strides=segments([]), operandSegmentSizes=counts,
        )  # fmt: skip
    else:
        ctx.emit("tpu.strided_store", [value, ref.buffer, *where.starts], [], strides=segments(where.strides))


def segments(numbers: Sequence[int]) -> str:
    """The text of an attribute of int32s: strides, or how many of the operands are each."""
    return f"array<i32: {', '.join(map(str, numbers))}>" if numbers else "array<i32>"


def _check_space(ctx: Any, ref: MosaicRef, part: Part) -> None:
    """KernelError for a memory whose elements are not read so."""
    if ref.space == "smem" and shape_of(part):
        raise KernelError(
            f"{ctx.place()}: SMEM holds scalars, and only one element at a time is read or written, but the part has "
            f"shape {shape_of(part)}; index each dimension with an int, or put the block into VMEM"
        )
    if ref.space not in ("smem", "vmem"):
        raise KernelError(
            f"{ctx.place()}: the ref is in the memory {ref.space!r}, from which a program can only copy; copy a part "
            "of it to a VMEM buffer with make_async_copy, or give the array a BlockSpec with a block"
        )


def part_of_buffer(ctx: Any, ref: MosaicRef, part: Part, indices: Sequence[Value]) -> Value:
    """The buffer that is a part of a ref, of the part's shape."""
    if is_whole(part, shape_of(part)) and shape_of(part) == ref.sizes:
        return ref.buffer
    where = window(ctx, ref, part, indices)
    starts = [ctx.one("arith.index_cast", [x], ctx.int32) for x in where.starts]
    kind = ctx.mlir.memory(where.sizes, ref.dtype, ref.space)
    counts = segments([1, len(starts), 0])
    buffer = ctx.one("tpu.memref_slice", [ref.buffer, *starts], kind, operandSegmentSizes=counts)
    if tuple(where.sizes) == shape_of(part):
        return buffer
    return ctx.one("tpu.memref_squeeze", [buffer], ctx.mlir.memory(shape_of(part), ref.dtype, ref.space))


def ref_of(buffer: Value, sizes: Sequence[int], squeezed: Sequence[bool], dtype: np.dtype, space: str) -> MosaicRef:
    """A ref of a buffer; one without dimensions is a buffer of one element."""
    if not sizes:
        return MosaicRef(buffer, (1,), (True,), dtype, space)
    return MosaicRef(buffer, tuple(sizes), tuple(squeezed), dtype, space)
