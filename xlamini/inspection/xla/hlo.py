"""The text of an HLO module as computations and instructions, and the labels in XLA's names of operations."""
from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from xlamini.core.caching.memo import memoised
from xlamini.runtime.hlo.computations import ENTRY, computations_of
from xlamini.runtime.hlo.instructions import Instruction, instruction

PLUMBING = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id"})
"""Opcodes that move and compute nothing."""
BODIES = frozenset({"while", "conditional", "call"})
"""Opcodes whose called computations consist of kernels."""

_LABEL = re.compile(r"(?:^|/)([^/;#]+#e\d+(?:(?:\.[^\W\d]\w*)?\.\d+)*)(?=$|[/;])")
_INDEX = re.compile(r"\bindex=(\d+)")


def label_of(op_name: str) -> str:
    """The label of the equation in one of XLA's op names; "" if there is none.

    >>> label_of("jit(f)/jit#e8/jit(f)/body/block/add#e0.0.2")
    'add#e0.0.2'
    >>> label_of("jit(f)/branch_0_fun/sin#e5.branch_0.1")
    'sin#e5.branch_0.1'
    """
    found = _LABEL.findall(op_name) if "#e" in op_name else ()
    return found[-1] if found else ""


@memoised("inspection: labels in op names", 16384)
def labels_of(op_name: str) -> tuple[str, ...]:
    """The labels of an op name, each once. XLA joins the names of several operations by semicolons, or in a group.

    >>> labels_of("jit(f)/tanh#e0;jit(f)/sin#e1")
    ('tanh#e0', 'sin#e1')
    >>> labels_of("jit(f)/(dot_general#e18:reduce_sum#e9)")
    ('dot_general#e18', 'reduce_sum#e9')
    """
    if ";" not in op_name and not op_name.endswith(")"):
        return (label,) if (label := label_of(op_name)) else ()
    names = [name for part in op_name.split(";") for name in _ungrouped(part)]
    return tuple(dict.fromkeys(filter(None, map(label_of, names))))


def _ungrouped(op_name: str) -> list[str]:
    """The op names of a group `prefix/(a:b)`."""
    prefix, opening, group = op_name.rpartition("/(")
    if not opening or not group.endswith(")"):
        return [op_name]
    return [f"{prefix}/{name}" for name in group[:-1].split(":")]


class HloComputation(NamedTuple):
    """The instructions of one computation by name, in the text's order, and how often it runs in a call."""

    name: str
    instructions: dict[str, Instruction]
    times: int

    @property
    def root(self) -> Instruction | None:
        """The instruction that is the result."""
        return next((each for each in reversed(self.instructions.values()) if each.is_root), None)

    @property
    def parameters(self) -> dict[int, str]:
        """The names of the parameters by their numbers."""
        return {number_of(each): each.name for each in self.instructions.values() if each.opcode == "parameter"}


class Module:
    """An HLO module, read from its text."""

    def __init__(self, text: str):
        self.lines: list[str] = text.split("\n")
        self._read = computations_of(text)
        times = self._read.times()
        self.computations: dict[str, HloComputation] = {
            name: HloComputation(name, {each.name: each for each in self._instructions(name)}, times.get(name, 0))
            for name in self._read.lines
        }

    def _instructions(self, name: str) -> Iterator[Instruction]:
        start = self._read.starts[name] + 1
        for number, line in enumerate(self._read.lines[name], start):
            if (found := instruction(line, number)) is not None:
                yield found

    @property
    def entry(self) -> HloComputation | None:
        """The computation that a call runs; None for a text without one."""
        return self.computations.get(ENTRY)

    @property
    def is_scheduled(self) -> bool:
        """Whether the text's order is the order of the run."""
        return "is_scheduled=true" in self.lines[0]

    def start(self, computation: str) -> int:
        """The number of the first line of a computation, which has its name and types."""
        return self._read.starts[computation]

    @cached_property
    def callers(self) -> dict[str, tuple[str, Instruction]]:
        """For each called computation the last instruction that calls it, and the computation of that."""
        return {
            called: (around.name, each)
            for around in self.computations.values()
            for each in around.instructions.values()
            for called in each.called
        }

    @cached_property
    def users(self) -> dict[str, dict[str, list[Instruction]]]:
        """For each computation, the users of each of its instructions."""
        found: dict[str, dict[str, list[Instruction]]] = {}
        for around in self.computations.values():
            users = found[around.name] = {}
            for each in around.instructions.values():
                for operand in dict.fromkeys(each.operands):
                    users.setdefault(operand, []).append(each)
        return found

    def ordered(self) -> Iterator[tuple[HloComputation, Instruction]]:
        """The instructions of the entry and of the bodies in it, in the order of a run; each body once."""
        entry = self.entry
        if entry is not None:
            yield from self._ordered(entry, {entry.name})

    def _ordered(self, around: HloComputation, seen: set[str]) -> Iterator[tuple[HloComputation, Instruction]]:
        for each in around.instructions.values():
            yield around, each
            for called in each.called if each.opcode in BODIES else ():
                if called not in seen and called in self.computations:
                    seen.add(called)
                    yield from self._ordered(self.computations[called], seen)

    def place(self, each: Instruction) -> str:
        """`file:line` of the user's program; "" where it is not known."""
        source = each.source
        if source is not None:
            return f"{source[0]}:{source[1]}"
        return self._read.places.get(each.frame or 0, "")


def number_of(parameter: Instruction) -> int:
    """The number of a parameter, from 0."""
    return int(parameter.value) if parameter.value.isdigit() else -1


def index_of(element: Instruction) -> int:
    """The index of a get-tuple-element."""
    found = _INDEX.search(element.attributes)
    return int(found[1]) if found else -1
