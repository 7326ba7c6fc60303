"""Loops of a gradient that keep more than they have to: intermediates of each step, in memory that no cache holds."""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xlamini.inspection.timing.causes.finding import TimeFinding
from xlamini.inspection.timing.causes.parts import parts, seconds_of
from xlamini.inspection.timing.trace.programs import TracedProgram
from xlamini.inspection.timing.trace.trace import TimedKernel, Trace
from xlamini.inspection.units import shown
from xlamini.inspection.xla.hlo import HloComputation, index_of
from xlamini.runtime.hlo.instructions import Instruction
from xlamini.runtime.hlo.shapes import bytes_of, dimensions_of, elements_of

_LARGE = 2**25
"""Bytes that fit into no cache, so that whoever writes them waits for the memory."""
_TOO_MUCH = 4
"""A loop that keeps so many times its carry keeps intermediates."""


class KeptStacks(NamedTuple):
    """What a loop keeps of all its steps, for another loop: the types of the arrays, and the bytes of its carry."""

    body: str
    types: list[str]
    carry: int

    @property
    def bytes(self) -> int:
        return sum(map(bytes_of, self.types))

    @property
    def is_too_much(self) -> bool:
        """Whether a step keeps several times the carry, from which all could be computed again."""
        each_step = sum(bytes_of(t) // max(dimensions_of(t)[0], 1) for t in self.types)
        return self.bytes > _LARGE and each_step >= _TOO_MUCH * self.carry


def kept_by_loops(trace: Trace) -> Iterator[TimeFinding]:
    """A loop keeps intermediates of all its steps for the backward pass."""
    for program, found in too_much_kept(trace).items():
        for stacks in found:
            kernels = [kernel for kernel in trace.kernels if kernel.of is program and moves_stack(kernel, stacks)]
            if kernels:
                line = max(kernels, key=seconds_of).place
                yield TimeFinding(sum(map(seconds_of, kernels)), _keeps(line, stacks), line)


def too_much_kept(trace: Trace) -> dict[TracedProgram, list[KeptStacks]]:
    """What the loops of each program keep too much of."""
    programs = dict.fromkeys(kernel.of for kernel in trace.kernels if kernel.of is not None)
    return {program: [stacks for stacks in stacks_of(program) if stacks.is_too_much] for program in programs}


def _keeps(line: str, stacks: KeptStacks) -> str:
    return (
        f"the loop around {line} keeps {len(stacks.types)} intermediates of each step for the gradient, "
        f"{shown(stacks.bytes, 'bytes')}, and moves them through memory; let them be computed again: "
        "jax.lax.scan(jax.checkpoint(body), ...)"
    )


def stacks_of(program: TracedProgram) -> Iterator[KeptStacks]:
    for around, each in program.module.ordered():
        body = next((name for name in each.called if f"body=%{name}" in each.attributes), "")
        inside = program.module.computations.get(body)
        if each.opcode == "while" and inside is not None and inside.root is not None:
            users, written = program.module.users[around.name], _written(program, inside)
            kept = [
                element.type
                for element in users.get(each.name, ())
                if written.get(index_of(element)) and _reaches_a_loop(element.name, users)
            ]
            types = elements_of(each.type)
            yield KeptStacks(body, kept, sum(bytes_of(types[i]) for i, is_stack in written.items() if not is_stack))


def _written(program: TracedProgram, body: HloComputation) -> dict[int, bool]:
    """The values that the body of a loop changes, by their indices: whether it writes a part of each, as of a stack."""
    found: dict[int, bool] = {}
    for index, name in enumerate(body.root.operands if body.root is not None else ()):
        made = body.instructions[name]
        if made.opcode != "get-tuple-element" or index_of(made) != index:
            inside = program.fused(body, made)
            found[index] = any(each.opcode == "dynamic-update-slice" for _, each in inside)
    return found


def _reaches_a_loop(name: str, users: dict[str, list[Instruction]], steps: int = 6) -> bool:
    """Whether a loop takes a value, which may be copied before and put into a tuple."""
    for user in users.get(name, ()) if steps else ():
        if user.opcode == "while":
            return True
        if user.opcode in ("tuple", "copy", "bitcast") and _reaches_a_loop(user.name, users, steps - 1):
            return True
    return False


def moves_stack(kernel: TimedKernel, stacks: KeptStacks) -> bool:
    """Whether a kernel writes a step's part in the loop, or makes or copies a whole stack outside of it."""
    found = list(parts(kernel))
    if found and found[0].around.name == stacks.body:
        return any(part.each.opcode == "dynamic-update-slice" for part in found)
    return bool(found) and found[0].each.type in stacks.types
