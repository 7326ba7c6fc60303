"""Runs a module: every program of the grid, as a GPU and as a TPU do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.support.kernel_text.kinds import poison
from tests.support.kernel_text.machine import Machine, Reader, parsed
from tests.support.kernel_text.memory import Memory
from tests.support.kernel_text.mosaic import MOSAIC
from tests.support.kernel_text.pipeline import Pipeline
from tests.support.kernel_text.triton import TRITON

Results = Sequence[tuple[tuple[int, ...], Any]]
"""The shape and the dtype of each result."""


def run_triton(
    module: Any,
    operands: Sequence[Any],
    results: Results,
    grid: Sequence[int],
    aliases: Mapping[int, int] | None = None,
    name: str | None = None,
) -> list[np.ndarray]:
    """The results of a module of Triton's. The last programs run first, as the order on a GPU is open."""
    inputs, outs = _arrays(operands, results, aliases or {})
    memory = Memory([*inputs, *outs])
    module = parsed(module)
    functions = Reader(TRITON).functions(module)
    name = name or next(n for n, f in functions.items() if f.attributes.get("sym_visibility") == "public")
    pointers = memory.pointers()
    for output, operand in _inverse(aliases or {}).items():
        memory.arrays[operand] = memory.arrays[len(inputs) + output]
        for each in (memory.writers, memory.read, memory.stored):
            each[operand] = each[len(inputs) + output]
    whole = (*grid, 1, 1, 1)[:3]
    with np.errstate(all="ignore"):
        for number, ids in reversed([*enumerate(np.ndindex(*whole[::-1]))]):
            memory.program = number
            memory.barrier()
            Machine(functions, memory, ids[::-1], whole).call(name, pointers)
    return [a.reshape(shape) for a, (shape, _) in zip(memory.arrays[len(inputs) :], results, strict=True)]


def run_mosaic(
    module: Any,
    operands: Sequence[Any],
    results: Results,
    aliases: Mapping[int, int] | None = None,
    name: str | None = None,
) -> list[np.ndarray]:
    """The results of a module of Mosaic's. Programs run in order, and blocks are copied when their index changes."""
    inputs, outs = _arrays(operands, results, aliases or {})
    for output, operand in _inverse(aliases or {}).items():
        inputs[operand] = outs[output]
    module = parsed(module)
    functions = Reader(MOSAIC).functions(module)
    name = name or next(n for n, f in functions.items() if "iteration_bounds" in f.attributes)
    with np.errstate(all="ignore"):
        Pipeline(functions, name, inputs, outs).run()
    return outs


def _inverse(aliases: Mapping[int, int]) -> dict[int, int]:
    return {output: operand for operand, output in aliases.items()}


def _arrays(
    operands: Sequence[Any], results: Results, aliases: Mapping[int, int]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Copies of the operands, and the results before anything is written: poison, or an aliased operand."""
    inputs = [np.array(x) for x in operands]
    starts = {output: inputs[operand] for operand, output in aliases.items()}
    return inputs, [np.array(starts[i]) if i in starts else poison(*each) for i, each in enumerate(results)]
