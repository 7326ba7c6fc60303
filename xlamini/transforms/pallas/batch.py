"""vmap of a kernel: one more axis in front of the grid, and one more dimension in the blocks of mapped operands."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import Axis, Dims, Jaxpr, ShapedArray, Values, aval_of
from xlamini.core.program.jaxpr import Var
from xlamini.core.program.kernels import Block, Kernel, Squeezed
from xlamini.primitives import move_batch_dim
from xlamini.primitives.shape.shape import moveaxis
from xlamini.staging.call.higher_order import merged
from xlamini.transforms.scan.api import scan

_INDEX = ShapedArray((), np.dtype(np.int32))


def batched_call(bind: Callable[..., Any], axis: Axis, operands: Values, dims: Dims, kernel: Kernel) -> Any:
    """The results of a kernel for each example, and their batch dimensions."""
    if any(d is not None for d in dims[: kernel.num_prefetch]) or any(map(_stays, kernel.blocks)):
        return _one_by_one(bind, operands, dims, kernel)
    aliased = {operand for operand, _ in kernel.aliases}
    to_front = [i in aliased or _is_in_tiles(x, d) for i, (x, d) in enumerate(zip(operands, dims, strict=True))]
    moved = [
        move_batch_dim(x, axis.size, d, 0) if moves else x
        for x, d, moves in zip(operands, dims, to_front, strict=True)
    ]
    places = [0 if moves else d for d, moves in zip(dims, to_front, strict=True)]
    outs = bind(*moved, kernel=_batched(kernel, axis.size, places[kernel.num_prefetch :]))
    return outs, [0] * len(outs)


def _stays(block: Block) -> bool:
    """Whether the array stays where it is, so that a kernel sees no block of it."""
    return block.memory_space in ("any", "hbm")


def _one_by_one(bind: Callable[..., Any], operands: Values, dims: Dims, kernel: Kernel) -> Any:
    """By a loop over the examples, where a prefetched scalar of an example would choose the blocks of all."""
    mapped = [d is not None for d in dims]

    def step(_: None, rows: Any) -> tuple[None, Any]:
        same = [x for x, is_mapped in zip(operands, mapped, strict=True) if not is_mapped]
        return None, bind(*merged(mapped, rows, same), kernel=kernel)

    rows = [moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True) if d is not None]
    outs = scan(step, None, rows)[1]
    return outs, [0] * len(outs)


def _is_in_tiles(x: Any, dim: int | None) -> bool:
    """Whether a mapped dimension is one of the last two, of which a TPU's blocks have whole tiles."""
    return dim is not None and 0 < dim >= aval_of(x).ndim - 2


def _batched(kernel: Kernel, size: int, dims: Sequence[int | None]) -> Kernel:
    every = [*dims, *[0] * kernel.num_outputs]
    return dataclasses.replace(
        kernel,
        jaxpr=_with_first(kernel.jaxpr),
        grid=(size, *kernel.grid),
        blocks=tuple(_batched_block(block, size, d) for block, d in zip(kernel.blocks, every, strict=True)),
    )


def _with_first(jaxpr: Jaxpr, out: int | None = None) -> Jaxpr:
    """The program with one more index in front; with `out` it is a result too, at that position."""
    index = Var(_INDEX)
    outs = list(jaxpr.outvars)
    if out is not None:
        outs.insert(out, index)
    return jaxpr.replace(invars=[index, *jaxpr.invars], outvars=outs)


def _batched_block(block: Block, size: int, dim: int | None) -> Block:
    if dim is None:
        return dataclasses.replace(block, index_map=_with_first(block.index_map))
    dims = list(block.dims)
    dims.insert(dim, Squeezed())
    array, index_map = block.array.inserted(dim, size), _with_first(block.index_map, dim)
    return dataclasses.replace(block, array=array, dims=tuple(dims), index_map=index_map)
