"""The instructions of the kernels in a trace, fused ones too, and what makes their operands: what causes look at."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from xlamini.inspection.timing.causes.finding import TimeFinding
from xlamini.inspection.timing.trace.programs import TracedProgram
from xlamini.inspection.timing.trace.trace import TimedKernel, Trace
from xlamini.inspection.xla.hlo import HloComputation, number_of
from xlamini.runtime.hlo.instructions import Instruction
from xlamini.runtime.hlo.shapes import dimensions_of

MOVES = frozenset({"bitcast", "copy", "reshape", "transpose", "convert"})
"""Opcodes of which the result has the elements of the operand."""


class KernelPart(NamedTuple):
    """An instruction of a program, or one that is fused into a kernel, with the computation around it."""

    program: TracedProgram
    around: HloComputation
    each: Instruction

    @property
    def place(self) -> str:
        return self.program.place_of(self.around, self.each)

    @property
    def dimensions(self) -> list[int] | None:
        """Those of an array; None for another type."""
        return None if self.each.type.startswith(("(", "token")) else dimensions_of(self.each.type)

    def fused_root(self) -> KernelPart | None:
        """What computes the result of a fusion."""
        inner = self.program.module.computations.get(self.each.called[0]) if self.each.called else None
        return None if inner is None or inner.root is None else self._replace(around=inner, each=inner.root)

    def operand(self, number: int) -> KernelPart | None:
        """What makes an operand, which for the argument of a fusion is outside of it; None at the program's border."""
        name = self.each.operands[number] if number < len(self.each.operands) else ""
        found = self.around.instructions.get(name)
        return None if found is None else self._replace(each=found).origin()

    def origin(self) -> KernelPart:
        """It itself, or what a fusion is given in its place."""
        caller = self.program.module.callers.get(self.around.name) if self.each.opcode == "parameter" else None
        if caller is None or caller[1].opcode != "fusion":
            return self
        outside = self._replace(around=self.program.module.computations[caller[0]], each=caller[1])
        return outside.operand(number_of(self.each)) or self

    def root(self) -> KernelPart:
        """What moves and conversions begin with."""
        found = self
        while found.each.opcode in MOVES and (inner := found.operand(0)) is not None:
            found = inner
        return found


def seconds_of(kernel: TimedKernel) -> float:
    """The seconds that a kernel takes of one device, those on unseen threads included."""
    return max(kernel.lasting, kernel.seconds) / max(len(kernel.devices), 1)


def is_on_cpu(kernel: TimedKernel) -> bool:
    """Whether a kernel ran on a CPU, whose devices have no planes of their own in a trace."""
    return not any(device.startswith("/device:") for device in kernel.devices)


def parts(kernel: TimedKernel) -> Iterator[KernelPart]:
    """The instruction of a kernel, and what is fused into it."""
    if kernel.of is not None:
        for around, each in kernel.of.inside(kernel.name):
            yield KernelPart(kernel.of, around, each)


def summed(
    trace: Trace, wanted: Callable[[TimedKernel], str], text: Callable[[str, list[TimedKernel]], str]
) -> Iterator[TimeFinding]:
    """A finding for each line that `wanted` gives for kernels, "" for those that do not count."""
    found: dict[str, list[TimedKernel]] = {}
    for kernel in trace.kernels:
        if line := wanted(kernel):
            found.setdefault(line, []).append(kernel)
    for line, kernels in found.items():
        yield TimeFinding(sum(map(seconds_of, kernels)), text(line, kernels), line)
