"""The memory of a GPU: arrays at addresses. An access outside of them is an error, and so is a race of programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.kernel_text.kinds import poison
from tests.support.kernel_text.machine import KernelTextError

_SHIFT = 40
"""An address is the number of an array, and in this many bits the byte in it, counted from `_START`."""
_START = 1 << (_SHIFT - 1)
_NOBODY, _ATOMIC = -1, -2


class Memory:
    """Flat arrays, and for each element the program that last wrote it.

    The threads of a program run at their own pace, so between a store of an element and another access to it there must
    be a barrier: `step` counts them.
    """

    def __init__(self, arrays: list[np.ndarray]):
        self.arrays = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        self.writers = [np.full(a.size, _NOBODY) for a in self.arrays]
        self.program = self.step = 0
        self.read, self.stored = ([np.full(a.size, -1) for a in self.arrays] for _ in range(2))

    def barrier(self) -> None:
        """The threads of the program have waited for each other."""
        self.step += 1

    def pointers(self) -> list[np.ndarray]:
        """The address of each array."""
        return [np.array((i << _SHIFT) + _START, np.int64) for i in range(len(self.arrays))]

    def load(self, addresses: np.ndarray, dtype: Any, mask: Any, other: Any) -> np.ndarray:
        """The elements at addresses; where the mask is false `other`, or poison."""
        mask = np.broadcast_to(True if mask is None else mask, addresses.shape)
        found = poison(addresses.shape, dtype) if other is None else np.array(np.broadcast_to(other, addresses.shape))
        for array, at, places in self._places(addresses, mask, dtype):
            self._check_order(array, at, "reads")
            self._check_waited(array, at, "reads", self.stored)
            self.read[array][at] = self.step
            found[places] = self.arrays[array].view(dtype)[at]
        return found

    def store(self, addresses: np.ndarray, values: Any, mask: Any) -> None:
        """Write elements where the mask is true."""
        mask = np.broadcast_to(True if mask is None else mask, addresses.shape)
        values = np.broadcast_to(values, addresses.shape)
        for array, at, places in self._places(addresses, mask, values.dtype):
            view = self.arrays[array].view(values.dtype)
            if _bits(view[at]) != _bits(values[places]):
                self._check_order(array, at, "writes")
            self._check_waited(array, at, "stores", self.stored, self.read)
            view[at] = values[places]
            self.stored[array][at] = self.step
            self.writers[array][at] = self.program

    def update(self, addresses: np.ndarray, values: Any, mask: Any, compute: Any) -> np.ndarray:
        """Change elements one after the other, as atomic operations do; the values before."""
        mask, values = (np.broadcast_to(m, addresses.shape) for m in (True if mask is None else mask, values))
        before = poison(addresses.shape, values.dtype)
        for place in filter(mask.__getitem__, np.ndindex(addresses.shape)):
            array = int(addresses[place] >> _SHIFT)
            at = int(self._elements(array, addresses[place], values.dtype))
            view = self.arrays[array].view(values.dtype)
            before[place] = view[at]
            view[at] = compute(view[at], values[place])
            self.writers[array][at] = _ATOMIC
        return before

    def _places(self, addresses: np.ndarray, mask: Any, dtype: Any) -> list[tuple[int, Any, Any]]:
        """For each array that is accessed: its number, the elements in it, and which of the addresses they are."""
        numbers = addresses >> _SHIFT
        found = []
        for number in np.unique(numbers[mask]):
            places = mask & (numbers == number)
            found.append((int(number), self._elements(int(number), addresses[places], dtype), places))
        return found

    def _elements(self, array: int, addresses: np.ndarray, dtype: Any) -> np.ndarray:
        size = np.dtype(dtype).itemsize
        at = addresses - ((array << _SHIFT) + _START)
        count = self.arrays[array].nbytes // size
        if np.any(at % size) or np.any((at // size < 0) | (at // size >= count)):
            raise KernelTextError(f"an access of elements {_ends(at // size)} of operand {array}, which has {count}")
        return at // size

    def _check_waited(self, array: int, at: np.ndarray, does: str, *steps: list[np.ndarray]) -> None:
        if any((step[array][at] == self.step).any() for step in steps):
            raise KernelTextError(
                f"a race: a thread {does} an element of operand {array} that another one may access; put a barrier "
                "in between"
            )

    def _check_order(self, array: int, at: np.ndarray, does: str) -> None:
        writers = self.writers[array][at] if self.writers[array].size > np.max(at, initial=-1) else np.array([])
        others = writers[(writers != _NOBODY) & (writers != _ATOMIC) & (writers != self.program)]
        if others.size:
            raise KernelTextError(
                f"a race: program {self.program} {does} an element of operand {array} that program {others[0]} wrote"
            )


def _bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x).tobytes()


def _ends(at: np.ndarray) -> str:
    return f"{at.min()} to {at.max()}"
