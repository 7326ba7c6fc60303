"""When lines did something, for the timeline of a page: their own Python, waits for the device, and transfers."""
from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from xlamini.inspection.timing.script.samples import PERIOD, FrameSample

MOST = 100_000
"""So many waits and so many transfers are kept, the first ones, which tell what each step does; sums have all."""


class LineSpan(NamedTuple):
    """What a line did from `start` to `end`, on the clock of `time.perf_counter`; of a transfer, its bytes."""

    what: str
    line: str
    """`file:line (function)`"""
    start: float
    end: float
    bytes: int = 0


def python_spans(samples: Iterable[FrameSample]) -> list[LineSpan]:
    """The times that samples count for; those of one line that follow on each other are one."""
    found: list[LineSpan] = []
    for sample in samples:
        start = sample.when - sample.seconds
        if found and found[-1].line == sample.line and start - found[-1].end < PERIOD / 2:
            found[-1] = found[-1]._replace(end=sample.when)
        else:
            found.append(LineSpan("Python", sample.line, start, sample.when))
    return found
