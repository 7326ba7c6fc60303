"""Where a script waits for the device: the lines that read arrays, and how long each of them was held up.

While they are counted, the methods by which arrays give up their values are measured, and `np.asarray` and `np.array`,
as NumPy reads the memory of an array on the CPU by itself; another function of NumPy's is not seen there. A read inside
of another, such as that of `repr`, counts once. One inside of a callback does not count, as what a callback is given is
there, nor the wait of a program with callbacks for its arguments, which is a part of its call.
"""
from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.errors.frames import is_inside, user_line
from xlamini.core.flags.config import callback_depth
from xlamini.inspection.timing.script.spans import MOST, LineSpan
from xlamini.runtime.arrays import conversions
from xlamini.runtime.arrays.to_device import ArrayImpl
from xlamini.runtime.execution.effects import run_with_callbacks
from xlamini.transforms.sharding import device_put

_READS = (
    "__array__", "__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__iter__", "__repr__",
    "__str__", "block_until_ready", "item", "tobytes", "tolist",
)  # fmt: skip


_PRINTS = ("__format__", "__repr__", "__str__")
_OF_SEVERAL = (conversions, "_fetched"), (device_put, "wait_for")
"""What `device_get` and `block_until_ready` do with all arrays that they are given, which is one wait."""
_OF_NUMPY = "asarray", "array"
END = "the end of the script"


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
        self.spans: list[LineSpan] = []
        """When the first reads began and ended."""
        self._replaced: list[tuple[Any, str, Any]] = []
        self._lock, self._inside = threading.RLock(), threading.local()  # a signal's handler may come between

    def __enter__(self) -> HostWaits:
        for place, name in (*((ArrayImpl, name) for name in _READS), *_OF_SEVERAL):
            member = vars(place).get(name)
            if isinstance(member, FunctionType):
                self._replace(place, name, self._measured(member))
        for name in _OF_NUMPY:
            self._replace(np, name, self._for_arrays(getattr(np, name)))
        return self

    def _replace(self, place: Any, name: str, member: Callable[..., Any]) -> None:
        self._replaced.append((place, name, getattr(place, name)))
        setattr(place, name, member)

    def __exit__(self, *error: object) -> None:
        for each in self._replaced:
            setattr(*each)

    def lines(self) -> list[LineWait]:
        return sorted(self._found.values(), key=lambda wait: -wait.seconds)

    @property
    def seconds(self) -> float:
        """The time of all reads."""
        return sum(wait.seconds for wait in self._found.values())

    def at_end(self, wait: Callable[[], object]) -> None:
        """Wait for what still runs, which no line of the script does."""
        self._inside.reads, start = True, time.perf_counter()
        wait()
        self._add(END, start, False)

    def _for_arrays(self, member: Callable[..., Any]) -> Callable[..., Any]:
        measured = self._measured(member)

        @functools.wraps(member)
        def read(*args: Any, **kwargs: Any) -> Any:
            is_array = bool(args) and type(args[0]) is ArrayImpl
            return measured(*args, **kwargs) if is_array else member(*args, **kwargs)

        return read

    def _measured(self, member: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(member)
        def read(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "reads", False) or callback_depth.value:
                return member(*args, **kwargs)
            self._inside.reads = True
            start = time.perf_counter()
            try:
                return member(*args, **kwargs)
            finally:
                self._inside.reads = False
                if not is_inside(run_with_callbacks):
                    self._add(user_line(), start, member.__name__ in _PRINTS and args[0].size > 1)

        return read

    def _add(self, line: str, start: float, prints: bool) -> None:
        end = time.perf_counter()
        with self._lock:
            if len(self.spans) < MOST:
                self.spans.append(LineSpan("wait", line, start, end))
            _, count, total, _ = self._found.get(line, LineWait(line, 0, 0.0))
            self._found[line] = LineWait(line, count + 1, total + end - start, prints)
