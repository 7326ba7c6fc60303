"""Copies between the memories of a TPU, and semaphores. What a copy writes arrives when the program waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.kernel_text.kinds import poison
from tests.support.kernel_text.machine import KernelTextError, Machine, Op, Rule


class Semaphore:
    """A count, and the copies that have begun."""

    def __init__(self) -> None:
        self.count = 0
        self.copies: list[Callable[[], None]] = []


def semaphores(shape: tuple[int, ...]) -> np.ndarray:
    """A buffer of semaphores."""
    made = np.empty(shape, object)
    for place in np.ndindex(shape):
        made[place] = Semaphore()
    return made


def _one(ref: np.ndarray) -> Semaphore:
    return ref.reshape(()).item()


def _enqueue(machine: Machine, op: Op, *operands: Any) -> None:
    """The values are read now; the target is not defined until the program has waited."""
    (source,), _, (target,), (semaphore,), *elsewhere = op.segments(operands)
    if any(elsewhere):
        raise KernelTextError("a copy to another device is not known")
    values = np.array(source).reshape(target.shape)
    target[...] = poison(target.shape, target.dtype)
    _one(semaphore).copies.append(lambda: np.copyto(target, values))


def _wait(machine: Machine, op: Op, *operands: Any) -> None:
    semaphore = operands[0]
    if not _one(semaphore).copies:
        raise KernelTextError("a wait for a copy that has not begun: on a TPU it would not end")
    _one(semaphore).copies.pop(0)()


def _signal(machine: Machine, op: Op, *operands: Any) -> None:
    (semaphore,), (amount,), *_ = op.segments(operands)
    _one(semaphore).count += int(amount)


def _wait_for(machine: Machine, op: Op, semaphore: Any, amount: Any) -> None:
    if _one(semaphore).count < int(amount):
        raise KernelTextError(f"a wait for {int(amount)} of a semaphore at {_one(semaphore).count}: it would not end")
    _one(semaphore).count -= int(amount)


COPIES: dict[str, Rule] = {
    "tpu.enqueue_dma": _enqueue, "tpu.wait_dma2": _wait,
    "tpu.sem_signal": _signal, "tpu.sem_wait": _wait_for,
    "tpu.sem_read": lambda machine, op, semaphore: np.int32(_one(semaphore).count),
    "tpu.sem_alloc": lambda machine, op: semaphores(op.kinds[0].shape),
}  # fmt: skip
