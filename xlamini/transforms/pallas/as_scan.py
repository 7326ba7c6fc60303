"""What a kernel means: a scan over its grid, of which each iteration runs one program on its blocks.

    as_scan(kernel)  ->  the program of the operands that gives the kernel's results

So a kernel runs on any platform, and has derivatives and batching, before anybody writes a rule.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Jaxpr, ShapedArray, Values
from xlamini.core.program.jaxpr import rewrites
from xlamini.core.program.kernels import Block, BlockDim, Blocked, Element, Kernel
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.discharge import discharge, written
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import full, zeros
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import reshape
from xlamini.primitives.shape.slice import slice as _slice
from xlamini.staging.trace.tracing import visible
from xlamini.transforms.scan.api import scan

_INT32 = np.dtype(np.int32)


class GridRun(NamedTuple):
    """The arrays during the scan: those that programs only read, then those that they may write."""

    prefetch: Sequence[Any]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    scratch: Sequence[Any]


def as_scan(kernel: Kernel) -> Jaxpr:
    """The program that runs the kernel's programs in the order of the grid, the last axis fastest."""
    key = as_scan, kernel
    known = kernel.jaxpr.memo.get(key)
    return rewrites.keep(kernel.jaxpr, key, _traced(kernel)) if known is None else known


def _traced(kernel: Kernel) -> Jaxpr:
    jaxpr, captured = build(lambda *operands: _results(kernel, operands), kernel.operand_avals(), kernel.name)
    assert not captured
    return jaxpr


def _results(kernel: Kernel, operands: Values) -> list[Any]:
    start = _start(kernel, operands)
    outputs = _in_order(kernel, start) if kernel.programs else start.outputs
    blocks = kernel.blocks[kernel.num_inputs :]
    return [_trimmed(x, block) for x, block in zip(outputs, blocks, strict=True)]


def _start(kernel: Kernel, operands: Values) -> GridRun:
    """The arrays at the start, with as many more elements as the blocks reach beyond their ends."""
    count = kernel.num_prefetch
    ins, outs = kernel.blocks[: kernel.num_inputs], kernel.blocks[kernel.num_inputs :]
    aliased = {output: operands[operand] for operand, output in kernel.aliases}
    results = [aliased[i] if i in aliased else zeros(block.array) for i, block in enumerate(outs)]
    scratch = [v.aval.inner_aval for v in kernel.refs()[len(kernel.refs()) - kernel.num_scratch :]]
    return GridRun(
        operands[:count],
        [_extended(x, block) for x, block in zip(operands[count:], ins, strict=True)],
        [_extended(x, block) for x, block in zip(results, outs, strict=True)],
        [zeros(aval) for aval in scratch],
    )


def _in_order(kernel: Kernel, start: GridRun) -> Sequence[Any]:
    def step(state: Any, number: Any) -> tuple[Any, None]:
        outputs, scratch = state
        return _program(kernel, _place(kernel.grid, number), start._replace(outputs=outputs, scratch=scratch)), None

    state = visible(start.outputs), visible(start.scratch)
    if kernel.programs == 1:
        return step(state, 0)[0][0]
    numbers = broadcasted_iota(_INT32, (kernel.programs,), 0)
    return scan(step, state, numbers)[0][0]


def _place(grid: tuple[int, ...], number: Any) -> list[Any]:
    """The indices of a program by its number."""
    ids: list[Any] = []
    for i, size in reversed([*enumerate(grid)]):
        ids.insert(0, np.int32(0) if size == 1 else number if i == 0 else number % size)
        number = number // size if size > 1 else number
    return ids


def _program(kernel: Kernel, ids: Sequence[Any], run: GridRun) -> tuple[list[Any], list[Any]]:
    """The outputs and the scratch memory after one program."""
    starts = [_starts(block, evaluate(discharge(block.index_map), [*ids, *run.prefetch])) for block in kernel.blocks]
    arrays = [*run.inputs, *run.outputs]
    parts = [_part(x, block, at) for x, block, at in zip(arrays, kernel.blocks, starts, strict=True)]
    after = dict(zip(kernel.refs(), [*run.prefetch, *parts, *run.scratch], strict=True))
    after.update(zip(written(kernel.jaxpr), evaluate(discharge(kernel.jaxpr), [*ids, *after.values()]), strict=True))
    last = list(after.values())[kernel.num_prefetch + kernel.num_inputs :]
    where = zip(run.outputs, last, kernel.blocks[kernel.num_inputs :], starts[kernel.num_inputs :], strict=False)
    return [_with_part(*each) for each in where], last[kernel.num_outputs :]


def _starts(block: Block, indices: Sequence[Any]) -> list[Any]:
    """Where a block begins in the extended array."""
    return [_first(d, i) for d, i in zip(block.dims, indices, strict=True)]


def _first(dim: BlockDim, index: Any) -> Any:
    return index * dim.block_size if isinstance(dim, Blocked) else index


def _part(x: Any, block: Block, starts: Sequence[Any]) -> Any:
    if block.is_whole:
        return reshape(x, block.shape)
    return reshape(dynamic_slice(x, starts, block.sizes), block.shape)


def _with_part(x: Any, part: Any, block: Block, starts: Sequence[Any]) -> Any:
    if block.is_whole:
        return reshape(part, block.sizes)
    return dynamic_update_slice(x, reshape(part, block.sizes), starts)


def _margins(dim: BlockDim, size: int) -> tuple[int, int]:
    """How many elements an array is extended by, in front and behind."""
    if isinstance(dim, Element):
        low, high = dim.padding
        return low, high + max(dim.block_size - low - size - high, 0)
    block = dim.block_size
    return 0, max(-size % block, block - size) if block else 0


def _extended(x: Any, block: Block) -> Any:
    margins = [_margins(d, n) for d, n in zip(block.dims, block.array.shape, strict=True)]
    if not any(map(any, margins)):
        return x
    return pad(x, full(ShapedArray((), block.array.dtype), 0), [(low, high, 0) for low, high in margins])


def _trimmed(x: Any, block: Block) -> Any:
    starts = [_margins(d, n)[0] for d, n in zip(block.dims, block.array.shape, strict=True)]
    ends = [start + n for start, n in zip(starts, block.array.shape, strict=True)]
    return _slice(x, starts, ends)
