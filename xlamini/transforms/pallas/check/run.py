"""The run of a kernel under checks: its programs one by one, then what they left in the results."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.program.kernels import Block, Kernel
from xlamini.transforms.pallas.check.blocks import buffer_of, memory_of, misplaced, starts_of
from xlamini.transforms.pallas.check.copies import SEMAPHORES, check_counts, check_waited
from xlamini.transforms.pallas.check.machine import Machine
from xlamini.transforms.pallas.check.memory import NOBODY, CheckedBuffer, CheckedMemory, whole
from xlamini.transforms.pallas.check.params import InterpretParams
from xlamini.transforms.pallas.check.rules import check_rules
from xlamini.transforms.pallas.check.twins import Twin, differs, host
from xlamini.transforms.pallas.check.walk import walk

_NOT_COPIED = ("any", "hbm")


def run_checked(kernel: Kernel, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a kernel; KernelCheckError for a mistake in it."""
    check_rules(kernel, kernel.interpret.target)
    return CheckedRun(kernel, kernel.interpret, operands).results()


class CheckedRun:
    """One run: the memories of all refs, and for each result which program had which of its blocks."""

    kernel: Kernel
    machine: Machine
    params: InterpretParams
    prefetch: list[CheckedMemory]
    scoped: list[CheckedMemory]
    semaphores: list[CheckedMemory]

    def __init__(self, kernel: Kernel, params: InterpretParams, operands: Sequence[np.ndarray]):
        self.kernel, self.params, self.machine = kernel, params, Machine(kernel, params)
        count, known = kernel.num_prefetch, params.uninitialized_memory == "zero"
        names = [kernel.name_of(i) for i in range(len(kernel.refs()))]
        self.prefetch = [_plain(n, "operand", x, True) for n, x in zip(names, operands[:count], strict=False)]
        self.arrays: list[CheckedMemory] = [
            memory_of(name, "operand", x, block, True)
            for name, x, block in zip(names[count:], operands[count:], kernel.blocks, strict=False)
        ]
        self.arrays += [self._result(i, operands, known) for i in range(kernel.num_outputs)]
        for operand, output in kernel.aliases:
            self.arrays[operand - count].share(self.arrays[kernel.num_inputs + output])
        scratch = kernel.refs()[len(names) - kernel.num_scratch :]
        self.scratch: list[CheckedMemory] = [
            _plain(name, "scratch", np.zeros(v.aval.shape, v.aval.dtype), known or v.aval.kind in SEMAPHORES)
            for name, v in zip(names[len(names) - len(scratch) :], scratch, strict=True)
        ]
        first = len(names) - len(self.scratch)
        is_semaphore = [v.aval.kind in SEMAPHORES for v in scratch]
        self.semaphores = [memory for memory, found in zip(self.scratch, is_semaphore, strict=True) if found]
        self.scoped = [memory for i, memory in enumerate(self.scratch, first) if kernel.is_scoped(i)]
        self.steps: list[tuple[int, ...]] = []
        self.visits: list[dict[tuple[int, ...], int]] = [{} for _ in kernel.blocks]

    def _result(self, output: int, operands: Sequence[np.ndarray], known: bool) -> CheckedMemory:
        kernel = self.kernel
        block = kernel.blocks[kernel.num_inputs + output]
        aliased = next((operands[i] for i, o in kernel.aliases if o == output), None)
        array = np.zeros(block.array.shape, block.array.dtype) if aliased is None else aliased
        name = kernel.name_of(kernel.num_prefetch + kernel.num_inputs + output)
        memory = memory_of(name, "result", array, block, known or aliased is not None)
        memory.is_window = block.memory_space not in _NOT_COPIED
        return memory

    def results(self) -> list[np.ndarray]:
        """Run all programs; the results."""
        for ids in self.machine.order.programs():
            self._run(ids)
        check_waited(self.machine)
        check_counts(self.machine, self.semaphores)
        outputs = self.arrays[self.kernel.num_inputs :]
        for memory, block, visits in zip(outputs, self._of_results(), self._visits(), strict=True):
            self._check_written(memory, block, visits)
            self._check_defined(memory)
        return [np.array(memory.lanes[0][memory.core]) for memory in outputs]

    def _of_results(self) -> Sequence[Block]:
        return self.kernel.blocks[self.kernel.num_inputs :]

    def _visits(self) -> Sequence[dict[tuple[int, ...], int]]:
        return self.visits[self.kernel.num_inputs :]

    # --- one program

    def _run(self, ids: tuple[int, ...]) -> None:
        self.machine.start(ids)
        if self.params.grid_point_recorder is not None:
            self.params.grid_point_recorder(tuple(map(np.int32, ids)), np.int32(0))
        for memory in self.scratch if self.params.target == "gpu" else self.scoped:
            if memory not in self.semaphores:
                memory.forget()
        numbers = list(map(np.int32, ids))
        buffers = [self._block(i, numbers) for i in range(len(self.arrays))]
        walk(self.machine, self.kernel.jaxpr, [*numbers, *self._prefetched(), *buffers, *map(whole, self.scratch)])
        check_waited(self.machine, [memory.name for memory in self.scoped])
        self.steps.append(ids)

    def _prefetched(self) -> list[CheckedBuffer]:
        return list(map(whole, self.prefetch))

    def _block(self, number: int, ids: Sequence[Any]) -> CheckedBuffer:
        """The program's block of an operand or a result."""
        memory, block = self.arrays[number], self.kernel.blocks[number]
        starts = self._starts(memory, block, ids)
        if memory.kind == "result":
            self._check_visit(memory, block, self.visits[number], starts)
        return buffer_of(memory, block, starts)

    def _starts(self, memory: CheckedMemory, block: Block, ids: Sequence[Any]) -> tuple[int, ...]:
        found = walk(self.machine, block.index_map, [*ids, *self._prefetched()])
        for x in found:
            if type(x) is Twin:
                self.machine.fail(memory.name, f"the index map of {memory.name} depends on undefined memory")
        starts = starts_of(block, [int(host(x)) for x in found])
        bad = misplaced(block, starts)
        if bad is not None:
            self.machine.fail(
                memory.name,
                f"the block of {memory.name} is not in its array: its index map leads to {bad}; change the index map "
                "or the grid",
            )
        return starts

    def _check_visit(
        self, memory: CheckedMemory, block: Block, visits: dict[tuple[int, ...], int], starts: tuple[int, ...]
    ) -> None:
        """On a TPU, a block that has left the fast memory does not come back."""
        last, now = visits.get(starts, len(self.steps)), len(self.steps)
        visits[starts] = now
        if self.params.target == "tpu" and last < now - 1 and block.memory_space not in _NOT_COPIED:
            self.machine.fail(
                memory.name,
                f"comes back to the block of {memory.name} that program {self.steps[last]} had, and others between did "
                "not: a TPU writes a block when programs leave it, and does not read it again; let the axis that adds "
                "up be the grid's last",
            )

    # --- after the last program

    def _check_written(self, memory: CheckedMemory, block: Block, visits: dict[tuple[int, ...], int]) -> None:
        unwritten = memory.writer[memory.core] == NOBODY
        if not unwritten.any():
            return
        element = tuple(map(int, np.argwhere(unwritten)[0]))
        program = next((self.steps[step] for starts, step in visits.items() if _has(block, starts, element)), None)
        where = f"element {element} of {memory.name}, and {int(unwritten.sum()) - 1} more"
        if program is None:
            self.machine.fail(
                memory.name, f"no block of any program has {where}; let the grid and the index map reach it", (), ""
            )
        self.machine.fail(
            memory.name, f"no program writes {where}; write all of the block, or alias an operand", program, ""
        )

    def _check_defined(self, memory: CheckedMemory) -> None:
        unknown = differs(*(lane[memory.core] for lane in memory.lanes))
        if not unknown.any():
            return
        element = tuple(map(int, np.argwhere(unknown)[0]))
        writer, place = (x[memory.core][element] for x in (memory.writer, memory.place))
        found = min(map(str, memory.origins), default="undefined memory")
        self.machine.fail(
            memory.name,
            f"element {element} of {memory.name} depends on {found}; write that memory first, or mask it with where",
            self.machine.order.ids(int(writer)),
            self.machine.lines[int(place)],
        )


def _has(block: Block, starts: Sequence[int], element: Sequence[int]) -> bool:
    return all(s <= e < s + n for s, e, n in zip(starts, element, block.sizes, strict=True))


def _plain(name: str, kind: str, array: np.ndarray, known: bool) -> CheckedMemory:
    """The memory of an array that is not in blocks."""
    return CheckedMemory(name, kind, array, [(0, 0)] * array.ndim, known)
