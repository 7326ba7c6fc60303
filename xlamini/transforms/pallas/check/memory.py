"""The memory of a kernel: arrays with two contents where they are undefined, and the last program at each element."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.transforms.pallas.check.twins import UndefinedCause, contents

NOBODY, BEFORE, SEVERAL = -1, -2, -3
"""In the place of a program's number: none; the caller, before the kernel; more than one."""
UNWRITTEN, BEYOND, OUTSIDE = "before anything wrote it", "beyond the end of its array", "outside of its block"
COPIED = "before the wait for a copy to it"


class CheckedMemory:
    """An array: `lanes` are its two contents, `writer` and `reader` the numbers of the last programs, by element.

    `place` says which line wrote an element, `atomic` whether an atomic update did, and `inside` whether it is of the
    array itself, not beyond its end.
    """

    core: tuple[slice[int, Any, Any], ...]
    atomic: np.ndarray
    inside: np.ndarray
    kind: str
    name: str
    place: np.ndarray
    reader: np.ndarray
    writer: np.ndarray

    def __init__(self, name: str, kind: str, array: np.ndarray, margins: Sequence[tuple[int, int]], known: bool):
        shape = tuple(low + n + high for n, (low, high) in zip(array.shape, margins, strict=True))
        self.name, self.kind = name, kind
        self.core = tuple(slice(low, low + n) for n, (low, _) in zip(array.shape, margins, strict=True))
        self.lanes: tuple[np.ndarray, np.ndarray] = contents(shape, array.dtype)
        self.writer, self.reader, self.place = (np.full(shape, NOBODY, np.int32) for _ in range(3))
        self.inside, self.atomic = np.zeros(shape, bool), np.zeros(shape, bool)
        self.inside[self.core] = True
        self.origins: set[UndefinedCause] = set()
        self.is_window = False
        """Whether a program sees a copy of its block in the fast memory of a TPU."""
        if known:
            for lane in self.lanes:
                lane[self.core] = array
            self.writer[self.core] = BEFORE

    def share(self, other: CheckedMemory) -> None:
        """Be at the addresses of another memory: what a program does to that, it does to this one."""
        if self.inside.shape == other.inside.shape:
            self.writer, self.reader = other.writer, other.reader
            self.place, self.atomic = other.place, other.atomic

    def forget(self) -> None:
        """Make all of it undefined again."""
        for lane, content in zip(self.lanes, contents(self.inside.shape, self.lanes[0].dtype), strict=True):
            lane[...] = content
        self.writer[...] = NOBODY


class CheckedBuffer:
    """What a ref is: a part of a memory, in which squeezed dimensions are left out."""

    memory: CheckedMemory
    where: tuple[Any, ...]

    def __init__(self, memory: CheckedMemory, where: tuple[Any, ...]):
        self.memory, self.where = memory, where
        self.lanes: list[np.ndarray] = [lane[where] for lane in memory.lanes]
        self.writer: np.ndarray = memory.writer[where]
        self.reader: np.ndarray = memory.reader[where]
        self.place: np.ndarray = memory.place[where]
        self.inside: np.ndarray = memory.inside[where]
        self.atomic: np.ndarray = memory.atomic[where]

    @property
    def name(self) -> str:
        return self.memory.name

    @property
    def kind(self) -> str:
        """"operand", "result" or "scratch"."""
        return self.memory.kind

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inside.shape


def whole(memory: CheckedMemory) -> CheckedBuffer:
    """The ref of all of a memory."""
    return CheckedBuffer(memory, (..., *[slice(None)] * memory.inside.ndim))
