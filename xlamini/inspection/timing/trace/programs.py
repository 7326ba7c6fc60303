"""The compiled programs of a process, by which the kernels of a trace find their equations and lines."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from xlamini.inspection.timing.trace.metadata import RecordedProgram
from xlamini.inspection.timing.trace.numbers import program_number
from xlamini.inspection.xla.hlo import BODIES, HloComputation, Module
from xlamini.inspection.xla.labels import Labelling, Labels
from xlamini.lowering.module import identifier
from xlamini.runtime.execution.executable import SegmentPlace
from xlamini.runtime.hlo.instructions import Instruction
from xlamini.staging.compile.ledger import compilations

_MOST_STEPS = 64


class TracedProgram:
    """A compiled program whose kernels are in a trace.

    One that was loaded from a file has the names and lines of the process that compiled it; `origin` has those of this.
    `choices` is the number of devices that the process could have run it on, 0 if it is not known.
    """

    module: Module
    in_shardings: Sequence[Any]
    segment: SegmentPlace | None
    choices: int
    source: Any
    """What the process made it from; None if that is gone, or it is part of a program."""

    def __init__(self, text: str, executable: Any = None):
        self.module, self._origin = Module(text), executable and executable.origin
        self.in_shardings = executable.in_shardings if executable else ()
        self.segment = executable.segment if executable else None
        self.choices = _choices(executable) if executable else 0
        self.source = executable.source() if executable and executable.source else None
        self._labelling = Labelling(self.module)
        self._has_labels = "#e" in text  # JAX's programs have none

    def name(self, traced: str) -> str:
        """The program's name, where the trace calls it `traced`."""
        return f"jit_{identifier(self._origin.name)}" if self._origin else traced

    @cached_property
    def _instructions(self) -> dict[str, tuple[HloComputation, Instruction]]:
        return {each.name: (around, each) for around, each in self.module.ordered()}

    def inside(self, kernel: str) -> list[tuple[HloComputation, Instruction]]:
        """The instruction of a kernel, and those that are fused into it, each with the computation that it is in."""
        return self.fused(*self._instructions[kernel]) if kernel in self._instructions else []

    def fused(self, around: HloComputation, instruction: Instruction) -> list[tuple[HloComputation, Instruction]]:
        """The same of an instruction."""
        found = [(around, instruction)]
        for _, each in found:  # it grows
            inner = [self.module.computations[name] for name in each.called if name in self.module.computations]
            found += [(around, one) for around in inner for one in around.instructions.values()]
        return found

    def all_instructions(self) -> Iterator[tuple[HloComputation, Instruction]]:
        """All instructions, those of fusions too."""
        for around in self.module.computations.values():
            for each in around.instructions.values():
                yield around, each

    def knows(self, kernels: Collection[str]) -> bool:
        """Whether it has instructions of all these names."""
        return self._instructions.keys() >= set(kernels)

    def is_body(self, kernel: str) -> bool:
        """Whether it is a loop, a branch or a call, whose time is that of the kernels inside."""
        return kernel in self._instructions and self._instructions[kernel][1].opcode in BODIES

    def instruction(self, kernel: str) -> Instruction | None:
        """The instruction of this name."""
        return self._instructions[kernel][1] if kernel in self._instructions else None

    def done(self, kernel: str) -> str:
        """The instruction that waits for the end of an asynchronous one; "" for another."""
        around, _ = self._instructions[kernel]
        return next((u.name for u in self.module.users[around.name].get(kernel, ()) if u.opcode.endswith("-done")), "")

    def labels(self, kernel: str) -> Labels:
        """The equations that a kernel comes from; () if the compiler put it in for none."""
        return self._labelling.of(*self._instructions[kernel]) if kernel in self._instructions else ()

    def is_inserted(self, kernel: str) -> bool:
        """Whether the compiler put a kernel in, such as a copy."""
        found = self._instructions.get(kernel)
        return self._has_labels and found is not None and not self._labelling.own(*found)

    def place(self, kernel: str) -> str:
        """`file:line` of the user's program; "" where it is not known."""
        return self.place_of(*self._instructions[kernel]) if kernel in self._instructions else ""

    def place_of(self, around: HloComputation, each: Instruction) -> str:
        """The same of any instruction."""
        own = self._own_place(each) if self._origin is None else ""
        of_labels = (self._places[label] for label in self._labelling.of(around, each) if label in self._places)
        return own or next(of_labels, "") or self._place_of_user(around, each)

    def _own_place(self, each: Instruction) -> str:
        """The place of an instruction; of a fusion without one, that of its result or of what is before it."""
        called = [self.module.computations[name] for name in each.called if name in self.module.computations]
        inside = [inner for body in called for inner in reversed(body.instructions.values())]
        return next(filter(None, map(self.module.place, [each, *inside])), "")

    def _place_of_user(self, around: HloComputation, each: Instruction) -> str:
        """That of the next instruction for which the compiler made this one, in a program without labels."""
        made, users = [each], {} if self._has_labels else self.module.users[around.name]
        for instruction in islice(made, _MOST_STEPS):
            following = users.get(instruction.name, [])
            if place := next(filter(None, map(self._own_place, following)), ""):
                return place
            made += [user for user in following if user not in made]
        return ""

    @cached_property
    def _places(self) -> Mapping[str, str]:
        """The places of equations by their labels."""
        if self._origin is not None:
            return self._origin.places.by_label
        found: dict[str, str] = {}
        for around, each in self.all_instructions():
            if place := self.module.place(each):
                for label in self._labelling.own(around, each)[:1]:
                    found.setdefault(label, place)
        return found


class TracedPrograms:
    """The programs of a trace, read from the executables that the process had, or from the recording itself."""

    def __init__(self, executables: Iterable[Any] = (), recorded: Iterable[RecordedProgram] = ()) -> None:
        self._recorded = list(recorded)
        self._named: dict[str, list[tuple[Any, Any]]] = {}
        self._read: dict[str, list[_NamedProgram]] = {}
        for executable in executables:
            for module in executable.loaded.hlo_modules():
                self._named.setdefault(module.name, []).append((module, executable))

    @cached_property
    def of_library(self) -> frozenset[str]:
        """The programs of functions of the library that are called outside of jit, which all lines share."""
        if not self._named:
            return frozenset()
        own, users = set[str](), set[str]()
        for entry in compilations():
            (own if entry.is_own else users).add(f"jit_{identifier(entry.name)}")
        return frozenset(own - users)

    def find(self, name: str, program: str, kernels: Iterable[str]) -> list[TracedProgram]:
        """The programs of this name, and with its number, that have these kernels.

        There is one, or none if nobody has it any more. There are several where equal functions share code that is on
        disk, or where none has the number, as in the file of a process that loaded the program. Programs that several
        processes compiled may have one number too, and then each has some of the kernels.
        """
        wanted = set(kernels)
        for known in (self._of_process(name), self._of_file(name)):
            own = [each.program for each in known if program in each.names]
            found = [each for each in own or [each.program for each in known] if each.knows(wanted)] or own
            if found:
                return found
        return []

    def _of_process(self, name: str) -> list[_NamedProgram]:
        """Those of this name that the process had, read once."""
        if name not in self._read:
            self._read[name] = [
                _NamedProgram(
                    self._names(name, program_number(module, executable)),
                    TracedProgram(module.to_string(), executable),
                )
                for module, executable in self._named.get(name, ())
            ]
        return self._read[name]

    def _names(self, name: str, number: int) -> set[str]:
        """A module's name with its number, and with those in the table of the recording, which a TPU's events have."""
        return {f"{name}({number})", *(r.program for r in self._recorded if r.name == name and r.number == number)}

    def _of_file(self, name: str) -> list[_NamedProgram]:
        """Those of this name in the recording."""
        found: list[_NamedProgram] = []
        for recorded in (each for each in self._recorded if each.name == name):
            with suppress(RuntimeError):  # of an XLA of another age: the kernels keep their names
                found.append(_NamedProgram({recorded.program}, TracedProgram(recorded.to_string())))
        return found


class _NamedProgram(NamedTuple):
    """A program with the names that events may have for it."""

    names: set[str]
    program: TracedProgram


def _choices(executable: Any) -> int:
    """How many devices of its platform this process has."""
    return len(executable.loaded.local_devices()[0].client.local_devices())
