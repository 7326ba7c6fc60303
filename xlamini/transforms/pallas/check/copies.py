"""Copies that a kernel starts and waits for, and semaphores.

From its start to its wait a copy's target is undefined, and its source has to stay. On one device nobody but the
program itself signals a semaphore, so a wait for more than it counts has no end.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Equation
from xlamini.transforms.pallas.check.accesses import load_elements, located, store_elements
from xlamini.transforms.pallas.check.machine import Machine
from xlamini.transforms.pallas.check.memory import COPIED, CheckedBuffer
from xlamini.transforms.pallas.check.parts import ElementPlaces, elements
from xlamini.transforms.pallas.check.twins import Twin, UndefinedCause, contents, differs, first, host, second

SEMAPHORES = ("semaphore", "dma_semaphore")
"""The memories that semaphores are in; they count 0 at the start."""


class CopyPlace(NamedTuple):
    """A part of a ref."""

    ref: CheckedBuffer
    where: ElementPlaces

    def key(self) -> Any:
        """What tells it from other parts, in all programs."""
        numbers = np.arange(self.ref.memory.inside.size).reshape(self.ref.memory.inside.shape)[self.ref.where]
        return id(self.ref.memory), tuple(numbers[self.where.index].flat)


class PendingCopy(NamedTuple):
    """A copy that runs: its parts, the value when it began, what is in the target until it ends, and who began it."""

    target: CopyPlace
    source: CopyPlace
    value: Any
    while_it_runs: Any
    semaphore: str
    program: tuple[int, ...]
    line: str


def start_copy(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Make the target undefined until the wait."""
    target, source, semaphore = _places(machine, eqn, inputs)
    value = load_elements(machine, *source)
    origin = UndefinedCause(target.ref.name, COPIED, machine.place)
    unknown = Twin(*contents(target.where.shape, target.ref.lanes[0].dtype), frozenset([origin]))
    is_late = machine.params.dma_execution_mode == "on_wait"
    store_elements(machine, target.ref, target.where, unknown if is_late else value)
    made = PendingCopy(
        target, source, value, unknown if is_late else value, semaphore.ref.name, machine.ids, machine.place
    )
    machine.copies.setdefault(semaphore.key(), []).append(made)
    return []


def wait_copy(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Give the target the source's value, which may not have changed."""
    target, _, semaphore = _places(machine, eqn, inputs)
    running = machine.copies.get(semaphore.key(), [])
    same = [copy for copy in running if copy.target.key() == target.key()] or running
    if not same:
        machine.fail(
            semaphore.ref.name,
            f"waits by {semaphore.ref.name} for a copy to {target.ref.name} that nobody has started; start it before",
        )
    copy = same[0]
    running.remove(copy)
    _check_kept(machine, copy.source, copy.value, "copied")
    _check_kept(machine, copy.target, copy.while_it_runs, "the target of a copy")
    store_elements(machine, copy.target.ref, copy.target.where, copy.value)
    return []


def _check_kept(machine: Machine, place: CopyPlace, value: Any, what: str) -> None:
    """An error if a part has been written since a copy began."""
    lanes = (lane[place.where.index].reshape(place.where.shape) for lane in place.ref.lanes)
    pairs = zip(lanes, (first(value), second(value)), strict=True)
    if any(differs(lane, np.broadcast_to(host(x), lane.shape)).any() for lane, x in pairs):
        name = place.ref.name
        machine.fail(name, f"{name} was written while it was {what}; write it after the wait")


def signal(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Add to a semaphore."""
    return _count(machine, eqn, inputs, 1)


def wait(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Take from a semaphore; an error if it counts less."""
    return _count(machine, eqn, inputs, -1)


def _count(machine: Machine, eqn: Equation, inputs: Sequence[Any], sign: int) -> Sequence[Any]:
    ref, amount, *operands = inputs
    where = located(machine, ref, operands, "writes", partial(elements, eqn.params["view"], ref.shape))
    now = int(host(load_elements(machine, ref, where))) + sign * int(host(first(amount)))
    if now < 0:
        machine.fail(
            ref.name,
            f"waits without an end: {ref.name} counts {now - sign * int(host(first(amount)))}, and the wait is for "
            f"{int(host(first(amount)))}; signal it before",
        )
    store_elements(machine, ref, where, np.int32(now))
    return []


def _places(machine: Machine, eqn: Equation, inputs: Sequence[Any]) -> tuple[CopyPlace, CopyPlace, CopyPlace]:
    """The target, the source and the semaphore of a copy."""
    views = eqn.params["views"]
    each = zip(inputs[:3], views[:3], views.operands(inputs[3:]), ("writes", "reads", "writes"), strict=True)
    target, source, semaphore = (
        CopyPlace(ref, located(machine, ref, operands, verb, partial(elements, view, ref.shape)))
        for ref, view, operands, verb in each
    )
    return target, source, semaphore


def check_waited(machine: Machine, names: Sequence[str] | None = None) -> None:
    """An error for a copy that nobody waited for; `names` are the semaphores to look at, by default all."""
    for copy in (copy for running in machine.copies.values() for copy in running):
        if names is None or copy.semaphore in names:
            machine.fail(
                copy.target.ref.name,
                f"a copy to {copy.target.ref.name} by {copy.semaphore} has no wait; wait before the kernel ends",
                copy.program,
                copy.line,
            )


def check_counts(machine: Machine, semaphores: Sequence[Any]) -> None:
    """An error for a semaphore, a memory, that does not count 0 at the end."""
    for memory in semaphores:
        count = int(np.abs(memory.lanes[0]).max(initial=0))
        if count:
            at = np.unravel_index(np.abs(memory.lanes[0]).argmax(), memory.inside.shape) if memory.inside.shape else ()
            line = machine.lines[int(memory.place[at])]
            machine.fail(
                memory.name,
                f"{memory.name} counts {count} at the end, and must count 0; wait as often as it is signalled",
                machine.order.ids(int(memory.writer[at])),
                line,
            )
