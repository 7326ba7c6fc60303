"""A program in segments: executables that run one after another.

Values have numbers: the arguments come first, then the results of each step.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from xlamini.core import ShapedArray
from xlamini.runtime.executable import Executable, placed_on
from xlamini.runtime.host_memory import memory_needed
from xlamini.runtime.sharding import Sharding
from xlamini.runtime.to_device import ArrayImpl


class Step(NamedTuple):
    """An executable, the numbers of the values that it takes, and of those that nothing after it reads."""

    executable: Executable
    operands: Sequence[int]
    freed: Sequence[int]


@dataclass
class SegmentedExecutable:
    """An executable that runs in steps, on one device."""

    steps: Sequence[Step]
    outputs: Sequence[int]
    in_avals: Sequence[ShapedArray]
    in_shardings: Sequence[Sharding]
    donated: frozenset[int]
    is_one = runs_alone = False

    @property
    def is_awaited(self) -> bool:
        """Whether effects_barrier waits for its runs."""
        return any(step.executable.is_awaited for step in self.steps)

    def place(self, values: Sequence[Any]) -> list[ArrayImpl]:
        """The arguments as Arrays of the program's input types, on its device."""
        return placed_on(self.in_shardings, self.in_avals, values)

    def call(self, arrays: Sequence[ArrayImpl], committed: bool = False) -> list[ArrayImpl]:
        """Run the steps on placed Arrays; it returns before the results have been computed."""
        values: list[Any] = list(arrays)
        for executable, operands, freed in self.steps:
            values += executable.call([values[i] for i in operands], committed)
            for i in freed:
                values[i] = None
        for i in self.donated:  # of those that no step could reuse, the memory is free now
            arrays[i].delete()
        return [values[i] for i in self.outputs]

    @property
    def memory_needed(self) -> int:
        """The most bytes at a time: of results that later steps or the caller read, and of the step that runs."""
        sizes, held, most = [0] * len(self.in_avals), 0, 0
        for executable, _, freed in self.steps:
            most = max(most, held + memory_needed(executable))
            sizes += [aval.nbytes for aval in executable.out_avals]
            held += sum(aval.nbytes for aval in executable.out_avals) - sum(sizes[i] for i in freed)
        return most
