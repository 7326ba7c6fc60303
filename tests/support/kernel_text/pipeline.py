"""How a TPU runs a grid: blocks of operands are copied in, blocks of results out, when their index changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.kernel_text.copies import semaphores
from tests.support.kernel_text.kinds import Kind, poison
from tests.support.kernel_text.machine import Function, KernelTextError, Machine
from tests.support.kernel_text.refs import same_memory


@dataclass
class Window:
    """The block of an array that is in the fast memory."""

    array: np.ndarray
    kind: Kind
    params: dict[str, Any]
    is_result: bool
    index: tuple[int, ...] | None = None
    buffer: Any = None

    @property
    def is_copied(self) -> bool:
        """Whether there is a block; else the program sees the array where it is."""
        return "window_bounds" in self.params

    def move(self, index: Sequence[int]) -> None:
        """Go to the block at an index; one that has been written goes out first."""
        if tuple(index) == self.index:
            return
        self.flush()
        self.index, sizes = tuple(index), self.params["window_bounds"]
        self.buffer = poison(tuple(sizes), self.array.dtype)
        inner, outer = self._overlap()
        if not self.is_result:
            self.buffer[inner] = self.array[outer]

    def flush(self) -> None:
        """Copy the block of a result out."""
        if self.is_result and self.index is not None:
            inner, outer = self._overlap()
            self.array[outer] = self.buffer[inner]

    def ref(self) -> np.ndarray:
        """What the program takes."""
        return same_memory(self.buffer if self.is_copied else self.array, self.kind.shape)

    def _overlap(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Which elements of the block are in the array, and where there."""
        inner, outer = [], []
        for start, size, end in zip(self._starts(), self.params["window_bounds"], self.array.shape, strict=True):
            first, last = max(start, 0), min(start + size, end)
            if first >= last:
                raise KernelTextError(f"block {self.index} is not in the array of shape {self.array.shape}")
            inner.append(slice(first - start, last - start))
            outer.append(slice(first, last))
        return tuple(inner), tuple(outer)

    def _starts(self) -> list[int]:
        """Where the block begins; an index of an element window counts elements."""
        assert self.index is not None
        lows = self._lows()
        if lows is not None:
            return [i - low for i, low in zip(self.index, lows, strict=True)]
        return [i * size for i, size in zip(self.index, self.params["window_bounds"], strict=True)]

    def _lows(self) -> list[int] | None:
        """How far an element window may begin before the array."""
        kind = str(self.params.get("window_kind", ""))
        if "element_window" not in kind:
            return None
        first = kind[kind.index("[") + 1 : kind.index("]")]
        return [int(n) for n in first.split(",")]


class Pipeline:
    """The run of one function over its grid."""

    def __init__(self, functions: dict[str, Function], name: str, inputs: list[np.ndarray], outs: list[np.ndarray]):
        self.functions, self.function = functions, functions[name]
        attributes = self.function.attributes
        self.grid = tuple(int(n) for n in attributes["iteration_bounds"])
        prefetch, scratch = attributes.get("scalar_prefetch", 0), attributes.get("scratch_operands", 0)
        kinds = self.function.body.kinds[len(self.grid) :]
        self.prefetch = [same_memory(x, k.shape) for x, k in zip(inputs[:prefetch], kinds, strict=False)]
        self.scratch = [_scratch(kind) for kind in kinds[len(kinds) - scratch :]]
        arrays = [*inputs[prefetch:], *outs]
        params = attributes.get("window_params") or [{} for _ in arrays]
        blocks = kinds[prefetch : len(kinds) - scratch]
        firsts = [i >= len(arrays) - len(outs) for i in range(len(arrays))]
        self.windows = [Window(*each) for each in zip(arrays, blocks, params, firsts, strict=True)]
        self._check_types()

    def run(self) -> None:
        """Run every program, the last axis fastest, then copy the last blocks out."""
        for ids in np.ndindex(*self.grid):
            self._program(ids)
        for window in filter(lambda w: w.is_copied, self.windows):
            window.flush()
        self._check_copies()

    def _program(self, ids: tuple[int, ...]) -> None:
        machine, places = Machine(self.functions, None, ids, self.grid), [np.int32(i) for i in ids]
        for window in filter(lambda w: w.is_copied, self.windows):
            window.move([int(i) for i in machine.call(window.params["transform_indices"], [*places, *self.prefetch])])
        refs = [window.ref() for window in self.windows]
        machine.call(self.function.name, [*places, *self.prefetch, *refs, *self.scratch])

    def _check_types(self) -> None:
        for window in self.windows:
            if window.array.dtype != window.kind.dtype:
                raise KernelTextError(f"a ref of {window.kind.dtype} to an array of {window.array.dtype}")

    def _check_copies(self) -> None:
        for buffer in self.scratch:
            if buffer.dtype == object and any(s.copies for s in buffer.flat):
                raise KernelTextError("a copy has begun that no program waits for")


def _scratch(kind: Kind) -> np.ndarray:
    return semaphores(kind.shape) if kind.dtype == object else poison(kind.shape, kind.dtype)
