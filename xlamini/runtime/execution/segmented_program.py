"""A program in segments: executables that run one after another.

Values have numbers: the arguments come first, then the results of each step.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from xlamini.core import ShapedArray
from xlamini.core.errors import DeletedArrayError
from xlamini.runtime.arrays.lifetime import check_alive
from xlamini.runtime.arrays.to_device import ArrayImpl
from xlamini.runtime.execution.executable import Executable, placed_on
from xlamini.runtime.execution.host_memory import memory_needed
from xlamini.runtime.sharding import Sharding


class SegmentStep(NamedTuple):
    """An executable, the numbers of the values that it takes, and of those that are dead after it."""

    executable: Executable
    operands: Sequence[int]
    dead: Sequence[int]


@dataclass
class SegmentedExecutable:
    """An executable that runs in steps, on one device."""

    steps: Sequence[SegmentStep]
    outputs: Sequence[int]
    in_avals: Sequence[ShapedArray]
    in_shardings: Sequence[Sharding]
    donated: frozenset[int]
    is_single = runs_alone = False
    orders: ClassVar[tuple[()]] = ()
    several = False

    @property
    def is_awaited(self) -> bool:
        """Whether effects_barrier waits for its runs."""
        return any(step.executable.is_awaited for step in self.steps)

    def place(self, values: Sequence[Any]) -> list[ArrayImpl]:
        """The arguments as Arrays of the program's input types, on its device."""
        return placed_on(self.in_shardings, self.in_avals, values)

    def call(self, arrays: Sequence[ArrayImpl], committed: bool = False) -> list[ArrayImpl]:
        """Run the steps on placed Arrays; it returns before the results have been computed."""
        if self.donated:
            self._check_donation(arrays)
        values: list[Any] = list(arrays)
        for executable, operands, dead in self.steps:
            values += executable.call([values[i] for i in operands], committed)
            for i in dead:
                values[i] = None
        for i in self.donated:
            arrays[i].delete()  # even if no step could reuse its memory
        return [values[i] for i in self.outputs]

    def _check_donation(self, arrays: Sequence[ArrayImpl]) -> None:
        """Refuse what a later step would refuse, when others have taken the memory of donated arrays."""
        for x in arrays:
            check_alive(x)
        times = Counter(map(id, arrays))
        if any(times[id(arrays[i])] > 1 for i in self.donated):
            raise DeletedArrayError("an array cannot be donated and be another argument too")

    @property
    def memory_needed(self) -> int:
        """The most bytes at a time: of results that later steps or the caller read, and of the step that runs."""
        sizes, held, most = [0] * len(self.in_avals), 0, 0
        for executable, _, dead in self.steps:
            most = max(most, held + memory_needed(executable))
            made = [aval.nbytes for aval in executable.out_avals]
            sizes += made
            held += sum(made) - sum(sizes[i] for i in dead)
        return most
