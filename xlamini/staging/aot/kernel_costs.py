"""What kernels of one's own cost by their programs: operations, and the bytes that their blocks move."""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from xlamini.core import Jaxpr, subjaxprs
from xlamini.core.program.equation_kind import equation_cost
from xlamini.core.program.kernels import Block, Kernel
from xlamini.interpreters.dce import dce


class KernelCost(NamedTuple):
    """The cost of one call of a kernel."""

    flops: float
    moved: int
    """Bytes copied between memory and VMEM, where programs run in order: a block that stays is copied once."""
    asked: int
    """Bytes that all programs ask for; on a GPU, whose programs run at once, its cache has some of them."""
    arrays: int
    """Bytes of the operands and results, each once."""
    programs: int
    dtypes: tuple[str, ...]


def kernels_in(jaxpr: Jaxpr) -> Iterator[tuple[str, KernelCost]]:
    """The name and the cost of each kernel of a program, in its order."""
    for eqn in jaxpr.eqns:
        kernel = eqn.params.get("kernel")
        if isinstance(kernel, Kernel):
            yield kernel.name, _cost(kernel, equation_cost(eqn).flops)
        else:
            for inner in subjaxprs(eqn):
                yield from kernels_in(inner)


def _cost(kernel: Kernel, flops: float) -> KernelCost:
    copied = [block for block in kernel.blocks if block.memory_space != "any"]
    moved = sum(_copies(block, kernel.grid) * _bytes(block) for block in copied)
    asked = sum(kernel.programs * _bytes(block) for block in copied)
    arrays = sum(block.array.nbytes for block in kernel.blocks)
    dtypes = tuple(dict.fromkeys(block.array.dtype.name for block in kernel.blocks))
    return KernelCost(flops, moved, asked, arrays, kernel.programs, dtypes)


def _bytes(block: Block) -> int:
    return math.prod(block.sizes) * block.array.dtype.itemsize


def _copies(block: Block, grid: tuple[int, ...]) -> int:
    """How often another block than before is needed: the last axis of the grid is the fastest."""
    index_map = block.index_map
    used = dce(index_map, (True,) * len(index_map.outvars))[1]
    last = max((axis for axis in range(len(grid)) if used[axis]), default=-1)
    return math.prod(grid[: last + 1])
