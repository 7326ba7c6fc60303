"""Where a script waits for the device: the lines that read arrays, and how long each of them was held up.

While they are counted, the methods by which arrays give up their values are measured. A read inside of another, such as
that of `repr`, counts once. NumPy reads the memory of an array on the CPU by itself, so that `np.asarray(x)` is not
seen there.
"""
from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from xlamini.core.errors.frames import user_line
from xlamini.runtime.arrays.to_device import ArrayImpl

_READS = (
    "__array__", "__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__iter__", "__repr__",
    "__str__", "block_until_ready", "item", "tobytes", "tolist",
)  # fmt: skip


_PRINTS = ("__format__", "__repr__", "__str__")
_PAUSE = 20e-6
"""Reads of one line with less than these seconds between them, as those of `device_get`, are one."""


class LineWait(NamedTuple):
    """How often a line read arrays, and the seconds that this took."""

    line: str
    """`file:line (function)`"""
    count: int
    seconds: float
    prints: bool = False
    """Whether it writes arrays of several elements as text, for which all of them are read."""


class HostWaits:
    """A context manager under which reads are measured; `lines()` are those that waited longest first."""

    def __init__(self) -> None:
        self._found: dict[str, LineWait] = {}
        self._replaced: dict[str, Any] = {}
        self._lock, self._inside = threading.RLock(), threading.local()  # a signal's handler may come between
        self._last = "", 0.0

    def __enter__(self) -> HostWaits:
        for name in _READS:
            member = vars(ArrayImpl).get(name)
            if isinstance(member, FunctionType):
                self._replaced[name] = member
                setattr(ArrayImpl, name, self._measured(member))
        return self

    def __exit__(self, *error: object) -> None:
        for name, member in self._replaced.items():
            setattr(ArrayImpl, name, member)

    def lines(self) -> list[LineWait]:
        return sorted(self._found.values(), key=lambda wait: -wait.seconds)

    @property
    def seconds(self) -> float:
        """The time of all reads."""
        return sum(wait.seconds for wait in self._found.values())

    def _measured(self, member: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(member)
        def read(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "reads", False):
                return member(*args, **kwargs)
            self._inside.reads = True
            start = time.perf_counter()
            try:
                return member(*args, **kwargs)
            finally:
                self._inside.reads = False
                self._add(user_line(), start, member.__name__ in _PRINTS and args[0].size > 1)

        return read

    def _add(self, line: str, start: float, prints: bool) -> None:
        with self._lock:
            (last, ended), end = self._last, time.perf_counter()
            _, count, total, _ = self._found.get(line, LineWait(line, 0, 0.0))
            goes_on = line == last and start - ended < _PAUSE
            self._found[line] = LineWait(line, count + (not goes_on), total + end - start, prints)
            self._last = line, time.perf_counter()
