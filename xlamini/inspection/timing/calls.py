"""When a recording's programs were called from Python, and when they ran on a device."""
from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from xlamini.inspection.timing.events import KernelRun

_CALL = "PjitFunction("


class JitCall(NamedTuple):
    """A call of a jitted function, in seconds from the recording's beginning."""

    name: str
    start: float
    end: float


def host_calls(data: Any) -> list[JitCall]:
    """The calls of jitted functions in a `ProfileData`, in the order in which they began; a call in another is none."""
    with warnings.catch_warnings():
        # Python 3.13 warns of a class that C++ makes, where a warning that is an error would end the process.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = sorted(_calls(data), key=lambda call: (call.start, -call.end))
    until, outer = float("-inf"), list[JitCall]()
    for call in found:
        if call.end > until:
            outer.append(call)
            until = call.end
    return outer


def _calls(data: Any) -> Iterator[JitCall]:
    for plane in data.planes:
        for line in plane.lines if plane.name.startswith("/host:") else ():
            for event in line.events:
                if event.name.startswith(_CALL):
                    start, end = event.start_ns * 1e-9, event.end_ns * 1e-9
                    yield JitCall(event.name.removeprefix(_CALL).removesuffix(")"), start, end)


class Spans:
    """Times in which something went on, merged: whether a moment is in one, and after how many of them."""

    def __init__(self, spans: Iterable[tuple[float, float]]):
        self.starts, self.ends = list[float](), list[float]()
        for start, end in sorted(spans):
            if self.ends and start <= self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.starts.append(start)
                self.ends.append(end)

    def __contains__(self, when: float) -> bool:
        before = self.before(when)
        return before > 0 and when < self.ends[before - 1]

    def before(self, when: float) -> int:
        """How many had begun."""
        return bisect_right(self.starts, when)

    @property
    def seconds(self) -> float:
        return sum(self.ends) - sum(self.starts)


def device_calls(runs: Iterable[KernelRun]) -> Spans:
    """When programs ran on some device, each from its first kernel to its last, in seconds."""
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    for run in runs:
        key = run.program, run.call, run.device
        start, end = found.get(key, (run.start, run.end))
        found[key] = min(start, run.start), max(end, run.end)
    return Spans((start * 1e-9, end * 1e-9) for start, end in found.values())
