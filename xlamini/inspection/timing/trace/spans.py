"""Spans of time in which something went on, such as a program on a device."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


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
