"""Which kernels make and read each value: operands followed through plumbing, into loops, branches and calls."""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xlamini.inspection.xla.hlo import HloComputation, Module, index_of, number_of
from xlamini.inspection.xla.kernels import KernelInstruction, is_kernel
from xlamini.runtime.hlo.instructions import Instruction

_SAME = frozenset({"bitcast", "optimization-barrier", "add-dependency"})
Path = tuple[int, ...]
"""The indices of an element of nested tuples."""


class HloValue(NamedTuple):
    """An element of a kernel's result."""

    kernel: str
    index: Path


class Flow:
    """The values that the kernels of a module read."""

    def __init__(self, module: Module):
        self._module = module

    def read_by(self, found: KernelInstruction) -> Iterator[HloValue]:
        """The values of other kernels that a kernel reads."""
        for operand in dict.fromkeys(found.each.operands):
            yield from self._sources(found.around, operand, (), set())

    def _sources(
        self, around: HloComputation, name: str, path: Path, seen: set[tuple[str, str, Path]]
    ) -> Iterator[HloValue]:
        each = around.instructions.get(name)
        key = (around.name, name, path)
        if each is None or key in seen:
            return
        seen.add(key)
        if is_kernel(each):
            yield HloValue(each.name, path)
        elif each.opcode == "get-tuple-element":
            yield from self._sources(around, each.operands[0], (index_of(each), *path), seen)
        elif each.opcode == "tuple" and path:
            if path[0] < len(each.operands):
                yield from self._sources(around, each.operands[path[0]], path[1:], seen)
        else:
            yield from self._through(around, each, path, seen)

    def _through(
        self, around: HloComputation, each: Instruction, path: Path, seen: set[tuple[str, str, Path]]
    ) -> Iterator[HloValue]:
        """The sources of a value that comes out of a body, into one, or from an asynchronous kernel."""
        if each.opcode == "parameter":
            yield from self._argument(around, number_of(each), path, seen)
        elif each.opcode in ("while", "conditional", "call"):
            for name in each.called:
                body = self._module.computations.get(name)
                if body is not None and body.root is not None and f"condition=%{name}" not in each.attributes:
                    yield from self._sources(body, body.root.name, path, seen)
            if each.opcode == "while":
                yield from self._sources(around, each.operands[0], path, seen)
        elif each.operands and (each.opcode in _SAME or each.opcode.endswith(("-done", "-update"))):
            yield from self._sources(around, each.operands[0], path, seen)

    def _argument(
        self, around: HloComputation, number: int, path: Path, seen: set[tuple[str, str, Path]]
    ) -> Iterator[HloValue]:
        caller = self._module.callers.get(around.name)
        if caller is None:
            return
        outside, call = self._module.computations[caller[0]], caller[1]
        if call.opcode == "conditional":
            number += 1 + call.called.index(around.name)  # the first operand chooses
        if number < len(call.operands):
            yield from self._sources(outside, call.operands[number], path, seen)
        if call.opcode == "while":
            body = self._module.computations.get(call.called[-1])
            for name in call.called:
                body = self._module.computations.get(name)
                if body is not None and body.root is not None and f"body=%{name}" in call.attributes:
                    yield from self._sources(body, body.root.name, path, seen)
