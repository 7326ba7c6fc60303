"""Spans of time in which something went on, such as a program on a device."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from xlamini.inspection.timing.trace.runs import KernelRun


class Spans:
    """Times in which something went on, merged: whether a moment is in one, and after how many of them."""

    starts: list[float]
    ends: list[float]

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
