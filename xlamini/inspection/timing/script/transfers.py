"""What a script moves from the host to its devices: by line, with the bytes, and the dtypes that had to be converted.

While they are counted, the function by which NumPy arrays become arrays of a device is measured. A jitted function that
was compiled before puts its arguments there by another way, which is not seen.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.errors.frames import is_inside, user_line
from xlamini.core.events import TRACED, is_phase
from xlamini.inspection.timing.script.spans import MOST, LineSpan
from xlamini.runtime.arrays import to_device
from xlamini.staging.compile.program import Program


class LineTransfers(NamedTuple):
    """How often a line moved arrays of one type, with the bytes and the seconds of all of them."""

    line: str
    """`file:line (function)`"""
    given: str
    """The dtype and shape on the host, as `float64[32,8]`."""
    made: str
    """The dtype on the device."""
    is_captured: bool = False
    """Whether a jitted function captures them, so that they are moved as it is traced and compiled."""
    count: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def is_converted(self) -> bool:
        return not self.given.startswith(f"{self.made}[")


class Transfers:
    """A context manager under which transfers are measured; `lines()` are those that took longest first."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str, bool], LineTransfers] = {}
        self._lock, self._inside = threading.RLock(), threading.local()  # a signal's handler may come between
        self._replaced: tuple[Any, Any] = (None, None)
        self._counts = False
        self.spans: list[LineSpan] = []

    def __enter__(self) -> Transfers:
        self._counts, self._replaced = True, (to_device.batched_device_put, to_device.put_ndarray)
        to_device.batched_device_put, to_device.put_ndarray = map(self._measured, self._replaced)
        return self

    def __exit__(self, *error: object) -> None:
        self._counts = False  # the fast path of a function that was compiled meanwhile keeps what it was given
        to_device.batched_device_put, to_device.put_ndarray = self._replaced

    def lines(self) -> list[LineTransfers]:
        return sorted(self._found.values(), key=lambda each: -each.seconds)

    @property
    def seconds(self) -> float:
        """The time of all transfers."""
        return sum(each.seconds for each in self._found.values())

    def _measured(self, put: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any) -> Any:
            if not self._counts or getattr(self._inside, "puts", False):
                return put(*args)
            self._inside.puts, start = True, time.perf_counter()
            try:
                made = put(*args)
            finally:
                self._inside.puts = False
            if (given := _given(args)) is not None:
                self._add(given, made, start, time.perf_counter())
            return made

        return measured

    def _add(self, given: np.ndarray, made: Any, start: float, end: float) -> None:
        shown = f"{given.dtype.name}[{','.join(map(str, given.shape))}]"
        is_captured = is_phase(TRACED) or is_inside(Program.constants)
        key = user_line(), shown, made.dtype.name, is_captured
        with self._lock:
            found = self._found.get(key, LineTransfers(*key))
            self._found[key] = found._replace(
                count=found.count + 1, bytes=found.bytes + given.nbytes, seconds=found.seconds + end - start
            )
            if len(self.spans) < MOST:
                self.spans.append(LineSpan(f"{shown} to the device", key[0], start, end, given.nbytes))


def _given(args: tuple[Any, ...]) -> np.ndarray | None:
    """The NumPy array that is put on a device: the first argument, or the first of the values in the third."""
    values = [args[0], *args[2]] if isinstance(args[2], list) else args
    return next((x for x in values if isinstance(x, np.ndarray)), None)
