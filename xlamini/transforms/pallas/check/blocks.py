"""The block of an array that a program sees: where it begins, and as a part of the array's memory."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xlamini.core.program.kernels import Block, BlockDim, Blocked, Element, Squeezed
from xlamini.transforms.pallas.check.memory import CheckedBuffer, CheckedMemory


class Misplaced(NamedTuple):
    """A block that is not in its array: along which axis, at which elements, and the axis's size."""

    axis: int
    start: int
    stop: int
    size: int

    def __str__(self) -> str:
        return f"elements {self.start} to {self.stop} along axis {self.axis}, of which there are {self.size}"


def memory_of(name: str, kind: str, array: np.ndarray, block: Block, known: bool) -> CheckedMemory:
    """The memory of an operand or a result, with the margins that its blocks reach into."""
    margins = [_margins(d, n) for d, n in zip(block.dims, block.array.shape, strict=True)]
    return CheckedMemory(name, kind, array, margins, known)


def starts_of(block: Block, indices: Sequence[int]) -> tuple[int, ...]:
    """The first element of a block along each axis, by what the index map says."""
    return tuple(_start(d, i) for d, i in zip(block.dims, indices, strict=True))


def _start(dim: BlockDim, index: int) -> int:
    if isinstance(dim, Element):
        return index - dim.padding[0]
    return index * dim.block_size if isinstance(dim, Blocked) else index


def misplaced(block: Block, starts: Sequence[int]) -> Misplaced | None:
    """Where a block is not in its array."""
    for axis, (dim, start, size) in enumerate(zip(block.dims, starts, block.array.shape, strict=True)):
        stop = start + dim.block_size
        low, high = dim.padding if isinstance(dim, Element) else (0, 0)
        last = stop <= size + high if isinstance(dim, Element) else start < max(size, 1)
        if start < -low or not last:
            return Misplaced(axis, start, stop, size)
    return None


def buffer_of(memory: CheckedMemory, block: Block, starts: Sequence[int]) -> CheckedBuffer:
    """The block as a ref."""
    lows = [s.start for s in memory.core]
    spans = zip(block.dims, starts, lows, strict=True)
    return CheckedBuffer(memory, (..., *(_span(dim, start + low) for dim, start, low in spans)))


def _span(dim: BlockDim, start: int) -> slice | int:
    return start if isinstance(dim, Squeezed) else slice(start, start + dim.block_size)


def _margins(dim: BlockDim, size: int) -> tuple[int, int]:
    """How many elements blocks may reach beyond an array, in front and behind."""
    if isinstance(dim, Element):
        return dim.padding
    block = dim.block_size
    return 0, max(-size % block, block - size) if block else 0
