"""The compiled programs of a process, by which the kernels of a trace find their equations and lines."""
from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any

from xlamini.inspection.timing.trace.metadata import RecordedProgram
from xlamini.inspection.xla.hlo import BODIES, PLUMBING, HloComputation, Module
from xlamini.inspection.xla.labels import Labelling, Labels
from xlamini.lowering.module import identifier
from xlamini.runtime.execution.executable import ProgramOrigin
from xlamini.runtime.hlo.instructions import Instruction
from xlamini.staging.compile.ledger import compilations

_MOST_STEPS = 64
_FRAME = re.compile(r"stack_frame_id=\d+")


class TracedProgram:
    """A compiled program whose kernels are in a trace.

    One that was loaded from a file has the names and lines of the process that compiled it; `origin` has those of this.
    """

    module: Module
    in_shardings: Sequence[Any]

    def __init__(self, text: str, origin: ProgramOrigin | None, in_shardings: Sequence[Any] = ()):
        self.module, self._origin, self.in_shardings = Module(text), origin, in_shardings
        self._labelling = Labelling(self.module)
        self._has_labels = "#e" in text  # JAX's programs have none
        self._text = text

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

    @cached_property
    def body(self) -> str:
        """Its computations; see `_body`."""
        return _body(self._text)

    def knows(self, kernels: Collection[str]) -> bool:
        """Whether it has instructions of all these names."""
        return self._instructions.keys() >= set(kernels)

    def unseen(self, kernels: Collection[str]) -> int:
        """How many instructions of its entry that compute are none of these.

        Functions of one name, such as `step`, may have kernels of the same names, but a program runs all that it has.
        """
        entry = self.module.entry
        own = entry.instructions.values() if entry else ()
        return sum(each.name not in kernels for each in own if each.opcode not in PLUMBING | BODIES)

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
        self._read: dict[str, list[TracedProgram]] = {}
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

    def find(self, name: str, program: str, kernels: Iterable[str]) -> TracedProgram | None:
        """The program of this name with these kernels; None if the process no longer has it."""
        wanted = set(kernels)
        known = [found for found in self._of_process(name) if found.knows(wanted)]
        if not known:
            return next((found for found in self._of_file(name, program) if found.knows(wanted)), None)
        if len(known) == 1:
            return known[0]
        body = self._body(name, program)
        return min(known, key=lambda found: (found.unseen(wanted), found.body != body))

    def _of_process(self, name: str) -> list[TracedProgram]:
        """Those of this name that the process had, read once."""
        if name not in self._read:
            self._read[name] = [
                TracedProgram(module.to_string(), executable.origin, executable.in_shardings)
                for module, executable in self._named.get(name, ())
            ]
        return self._read[name]

    def _body(self, name: str, program: str) -> str:
        """The computations of a program by its number, which those that were loaded from a cache do not keep."""
        found = (each for each in self._recorded if (each.name, each.program) == (name, program))
        return next((_body(each.to_string()) for each in found), "")

    def _of_file(self, name: str, program: str) -> Iterator[TracedProgram]:
        """Those of this name in the recording. One that was loaded from a cache has another number there."""
        for recorded in sorted(self._recorded, key=lambda each: each.program != program):
            if recorded.name == name:
                with suppress(RuntimeError):  # of an XLA of another age: the kernels keep their names
                    yield TracedProgram(recorded.to_string(), None)


def _body(text: str) -> str:
    """The computations of a module without the numbers of stack frames, which XLA gives anew for each copy."""
    return _FRAME.sub("", text[text.index("\n%") if "\n%" in text else 0 :])
