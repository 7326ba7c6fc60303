"""Refs in Triton's kernels: pointers to parts of arrays, and the masks of blocks that reach beyond an array's end."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from xlamini.core.program.kernels import Block, Blocked, Element, Squeezed
from xlamini.core.program.ref_parts import ArrayDim, Part, PartDim, shape_of, whole
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import compare, element_of
from xlamini.lowering.kernels.context import INDEX, KernelContext, constant_like, filled
from xlamini.lowering.kernels.triton_shapes import arange, shape_of as value_shape, spread
from xlamini.lowering.kernels.triton_sizes import check_part

_PLAIN = {"cache": "1 : i32", "evict": "1 : i32"}


class RefDim(NamedTuple):
    """A dimension of an array as a program sees it: from `start` (None: 0) on, in blocks of `size` elements."""

    array_size: int
    stride: int
    size: int
    start: Value | None = None
    squeezed: bool = False
    checks_end: bool = False
    checks_begin: bool = False


class TritonRef(NamedTuple):
    """A ref in a kernel: a pointer to the whole array, and where the program's block is in it."""

    name: str
    pointer: Value
    dtype: np.dtype
    dims: tuple[RefDim, ...]
    memory: int | None = None
    """The number of the operand whose memory it is in, or behind the operands, of the result."""

    @property
    def is_large(self) -> bool:
        """Whether offsets in the array need 64 bits."""
        return math.prod(d.array_size for d in self.dims) > np.iinfo(np.int32).max

    @property
    def block(self) -> tuple[int, ...]:
        return tuple(d.size for d in self.dims if not d.squeezed)


class PointerPlace(NamedTuple):
    """The pointers to a part, as many as it has elements, the mask of those in the array (None: all), and the shape."""

    pointers: Value
    mask: Value | None
    shape: tuple[int, ...]


def whole_ref(name: str, pointer: Value, shape: Sequence[int], dtype: np.dtype) -> TritonRef:
    """The ref to all of an array."""
    dims = [RefDim(n, stride, n) for n, stride in zip(shape, _strides(shape), strict=True)]
    return TritonRef(name, pointer, dtype, tuple(dims))


def block_ref(ctx: KernelContext, name: str, pointer: Value, block: Block, indices: Sequence[Value]) -> TritonRef:
    """The ref to a program's block of an array, from the results of the block's index map."""
    if block.is_whole:
        ref = whole_ref(name, pointer, block.array.shape, block.array.dtype)
        squeezed = [type(dim) is Squeezed for dim in block.dims]
        return ref._replace(dims=tuple(d._replace(squeezed=s) for d, s in zip(ref.dims, squeezed, strict=True)))
    rows = zip(block.dims, block.array.shape, _strides(block.array.shape), indices, strict=True)
    return TritonRef(name, pointer, block.array.dtype, tuple(_ref_dim(ctx, *row) for row in rows))


def _ref_dim(ctx: KernelContext, dim: Any, array_size: int, stride: int, index: Value) -> RefDim:
    size, squeezed = dim.block_size, type(dim) is Squeezed
    start: Value | None = index
    if type(dim) is Blocked:
        start = None if size >= array_size else _scaled(ctx, index, size)
    ends = array_size % size != 0
    begins = False
    if type(dim) is Element:
        begins, ends = dim.padding[0] > 0, dim.padding[1] > 0 or size > array_size
    return RefDim(array_size, stride, size, start, squeezed, ends, begins)


def _strides(shape: Sequence[int]) -> list[int]:
    """How many elements lie between neighbours in each dimension."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def load(ctx: KernelContext, ref: TritonRef, place: PointerPlace, other: Value | None = None) -> Value:
    """The elements at a place; where the mask is false, those of `other`, by default 0."""
    operands = [place.pointers]
    if place.mask is not None:
        operands += [place.mask, _zeros(ctx, ref, place) if other is None else _stored(ctx, ref, other)]
    segments = f"array<i32: 1, {len(operands) // 2}, {len(operands) // 2}>"
    kind = _tensor(ctx, place.shape, _in_memory(ref.dtype))
    found = ctx.one("tt.load", operands, kind, **_PLAIN, isVolatile=False, operandSegmentSizes=segments)
    return compare(ctx, "NE", found, constant_like(ctx, 0, found)) if ref.dtype == np.bool_ else found


def store(ctx: KernelContext, ref: TritonRef, place: PointerPlace, value: Value) -> None:
    """Write values to a place, where its mask is true."""
    masks = [] if place.mask is None else [place.mask]
    ctx.emit("tt.store", [place.pointers, _stored(ctx, ref, value), *masks], [], (), **_PLAIN)


def _stored(ctx: KernelContext, ref: TritonRef, value: Value) -> Value:
    """A value as memory has it: bools are bytes."""
    if ref.dtype != np.bool_:
        return value
    return ctx.one("arith.extui", [value], _tensor(ctx, value_shape(value), np.int8))


def _in_memory(dtype: np.dtype) -> Any:
    return np.int8 if dtype == np.bool_ else dtype


def _zeros(ctx: KernelContext, ref: TritonRef, place: PointerPlace) -> Value:
    return filled(ctx, 0, _tensor(ctx, place.shape, _in_memory(ref.dtype)))


def _tensor(ctx: KernelContext, shape: tuple[int, ...], dtype: Any) -> ir.Type:
    dialect: Any = ctx.mlir
    return dialect.tensor(shape, dtype)


def place_of(ctx: KernelContext, ref: TritonRef, part: Part, indices: Sequence[Value]) -> PointerPlace:
    """The place of a part of a ref; `indices` are the operands in its starts."""
    shape = shape_of(part)
    check_part(ref.name, ref.block, shape)
    steps = _steps(ctx, ref, part, indices)
    pointers = _moved(ctx, ref.pointer, [s.base for s in steps if s.base is not None])
    offsets = [spread(ctx, s.offset, s.dims, shape) for s in steps if s.offset is not None]
    if shape:
        pointers = ctx.one("tt.splat", [pointers], _pointers(ctx, ref, shape))
    pointers = _moved(ctx, pointers, offsets)
    masks = [spread(ctx, m, s.dims, shape) for s in steps for m in s.masks]
    return PointerPlace(pointers, _all(ctx, masks), shape)


def masked(ctx: KernelContext, place: PointerPlace, mask: Value | None) -> PointerPlace:
    """A place with one more mask, of its shape."""
    masks = [m for m in (place.mask, mask) if m is not None]
    return place._replace(mask=_all(ctx, masks))


def _pointers(ctx: KernelContext, ref: TritonRef, shape: tuple[int, ...]) -> ir.Type:
    dialect: Any = ctx.mlir
    return dialect.pointer_to(dialect.element_type(np.dtype(_in_memory(ref.dtype))), shape)


def _all(ctx: KernelContext, masks: Sequence[Value]) -> Value | None:
    total = None
    for mask in masks:
        total = mask if total is None else ctx.one("arith.andi", [total, mask])
    return total


def _moved(ctx: KernelContext, pointer: Value, offsets: Sequence[Value]) -> Value:
    """A pointer, or a tensor of them, moved by the sum of offsets."""
    total = None
    for offset in offsets:
        total = offset if total is None else ctx.one("arith.addi", [total, offset])
    return pointer if total is None else ctx.one("tt.addptr", [pointer, total])


# --- the steps in each dimension


class _Step(NamedTuple):
    """What one dimension adds to a pointer: a scalar, and a tensor over some dimensions of the part; its masks."""

    base: Value | None
    offset: Value | None
    dims: tuple[int, ...]
    masks: Sequence[Value] = ()


def _steps(ctx: KernelContext, ref: TritonRef, part: Part, indices: Sequence[Value]) -> list[_Step]:
    dims, at, arrays = iter(part), 0, _array_dims(part)
    steps = []
    for dim in ref.dims:
        sub = PART_OF_SQUEEZED if dim.squeezed else next(dims)
        if isinstance(sub, ArrayDim):
            steps.append(_array_step(ctx, ref, dim, sub, indices, arrays))
            at = max(at, arrays[-1] + 1) if arrays else at
            continue
        steps.append(_step(ctx, ref, dim, sub, indices, at))
        at += not sub.squeezed
    return steps


PART_OF_SQUEEZED = whole((1,))[0]._replace(squeezed=True)


def _array_dims(part: Part) -> tuple[int, ...]:
    """The dimensions of a part's value that are those of the arrays in the index."""
    at = 0
    for dim in part:
        if isinstance(dim, ArrayDim):
            return tuple(range(at, at + len(dim.shape)))
        at += not dim.squeezed
    return ()


def _array_step(
    ctx: KernelContext, ref: TritonRef, dim: RefDim, sub: ArrayDim, indices: Sequence[Value], dims: tuple[int, ...]
) -> _Step:
    atom = ctx.eqn.invars[len(ctx.eqn.invars) - len(indices) + sub.operand]
    array = _as_indices(ctx, indices[sub.operand], atom.aval.dtype.kind == "u")
    own = value_shape(array)
    dims = dims[len(dims) - len(own) :]
    positions = array if dim.start is None else ctx.one("arith.addi", [array, spread(ctx, dim.start, (), own)])
    wide = _widened(ctx, array) if ref.is_large else array
    base = None if dim.start is None else _scaled(ctx, _wide(ctx, ref, dim.start), dim.stride)
    return _Step(base, _scaled(ctx, wide, dim.stride), dims, _masks(ctx, dim, positions))


def _step(
    ctx: KernelContext, ref: TritonRef, dim: RefDim, sub: PartDim, indices: Sequence[Value], at: int
) -> _Step:
    start = _sum(ctx, dim.start, None if sub.start == (0, ()) else ctx.start(sub.start, indices))
    base = None if start is None else _scaled(ctx, _wide(ctx, ref, start), dim.stride)
    if sub.squeezed or sub.size == 1:
        checked = dim.checks_end or dim.checks_begin
        position = None if not checked else ctx.index(0) if start is None else start
        masks = _masks(ctx, dim, position) if checked else []
        return _Step(base, None, (), masks)
    steps = _scaled(ctx, arange(ctx, sub.size), sub.stride)
    positions = steps if start is None else ctx.one("arith.addi", [steps, spread(ctx, start, (), (sub.size,))])
    return _Step(base, _scaled(ctx, steps, dim.stride), (at,), _masks(ctx, dim, positions))


def _masks(ctx: KernelContext, dim: RefDim, positions: Value) -> list[Value]:
    masks = []
    if dim.checks_end:
        masks.append(signed_compare(ctx, 2, positions, dim.array_size))
    if dim.checks_begin:
        masks.append(signed_compare(ctx, 5, positions, 0))
    return masks


def signed_compare(ctx: KernelContext, predicate: int, x: Value, number: int) -> Value:
    """The comparison of signed integers with a number, by arith's number of the predicate."""
    dialect: Any = ctx.mlir
    kind = dialect.bools_like(x.type)
    return ctx.one("arith.cmpi", [x, constant_like(ctx, number, x)], kind, predicate=f"{predicate} : i64")


def _sum(ctx: KernelContext, x: Value | None, y: Value | None) -> Value | None:
    if x is None or y is None:
        return y if x is None else x
    return ctx.one("arith.addi", [x, y])


def _scaled(ctx: KernelContext, x: Value, factor: int) -> Value:
    return x if factor == 1 else ctx.one("arith.muli", [x, constant_like(ctx, factor, x)])


def _wide(ctx: KernelContext, ref: TritonRef, x: Value) -> Value:
    return _widened(ctx, x) if ref.is_large else x


def _widened(ctx: KernelContext, x: Value) -> Value:
    return ctx.one("arith.extsi", [x], _tensor(ctx, value_shape(x), np.int64))


def _as_indices(ctx: KernelContext, x: Value, is_unsigned: bool) -> Value:
    """An array of integers as int32s."""
    kind, width = _tensor(ctx, value_shape(x), INDEX.dtype), ir.IntegerType(element_of(x.type)).width
    extended = "arith.extui" if is_unsigned else "arith.extsi"
    return x if width == 32 else ctx.one("arith.trunci" if width > 32 else extended, [x], kind)
