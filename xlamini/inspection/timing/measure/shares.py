"""How the time of a call divides into the kernels that ran, the time between them, and that around them.

A moment in which several kernels ran, on threads or devices, counts for each in equal parts, so that all parts add up
to the time of the call. A moment in which none was seen counts for the kernel that was handed out to a pool of threads
last, if its end was not noted yet.
"""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from xlamini.inspection.timing.measure.calls import PooledRun, ProfiledCall


class RunShare(NamedTuple):
    """The seconds of a call that are a run's, and those of them that it spent in a pool of threads."""

    run: PooledRun
    seconds: float
    unseen: float


class CallShares(NamedTuple):
    """The seconds of a call, and its parts: those of each run, those between runs, those before the first and after
    the last; `threads` worked."""

    seconds: float
    runs: list[RunShare]
    between: float
    around: float
    threads: int


def call_shares(call: ProfiledCall) -> CallShares:
    """The parts of a call, whose runs are in the order in which they began."""
    seconds = (call.end - call.start) * 1e-9
    if not call.runs:
        return CallShares(seconds, [], 0.0, seconds, call.threads)
    spans = [run._replace(end=min(run.end, call.end)) for run in call.runs]
    clock, pending = _SharedClock(spans), _pending(spans)
    runs = [
        RunShare(run, clock.between(run.start, run.end) + gap, clock.between(run.handed_out, run.end) + gap)
        for run, gap in zip(spans, pending, strict=True)
    ]
    inside = (max(run.end for run in spans) - spans[0].start) * 1e-9
    between = max(round(inside - sum(r.seconds for r in runs), 12), 0.0)  # and not what rounding leaves over
    return CallShares(seconds, runs, between, seconds - inside, call.threads)


class _SharedClock:
    """A clock that goes slower by as many runs as there are at a time, and stands while there is none."""

    def __init__(self, runs: Sequence[PooledRun]):
        steps = sorted([*((run.start, 1) for run in runs), *((run.end, -1) for run in runs)])
        self._times, self._seconds = [steps[0][0]], [0.0]
        running = 0
        for (time, step), (following, _) in pairwise([*steps, steps[-1]]):
            running += step
            if following > time:
                self._times.append(following)
                self._seconds.append(self._seconds[-1] + (following - time) * 1e-9 / max(running, 1) * (running > 0))

    def between(self, start: float, end: float) -> float:
        """The seconds from one moment to another, by this clock; none if they are in the wrong order."""
        return max(self._at(end) - self._at(start), 0.0)

    def _at(self, time: float) -> float:
        after = min(bisect_left(self._times, time), len(self._times) - 1)
        if not after or self._times[after] <= time:
            return self._seconds[after]
        first, last = self._times[after - 1], self._times[after]
        here, there = self._seconds[after - 1], self._seconds[after]
        return here + (there - here) * (time - first) / (last - first)


def _pending(runs: Sequence[PooledRun]) -> list[float]:
    """For each run, the seconds in which none was seen while this was the last one whose end was not noted."""
    found, waiting = [0.0] * len(runs), list[tuple[float, int]]()
    order = sorted(range(len(runs)), key=lambda i: runs[i].handed_out)
    next_out = iter(order)
    out = next(next_out, None)
    for start, end in _gaps(runs):
        while out is not None and runs[out].handed_out <= start:
            heappush(waiting, (-runs[out].handed_out, out))
            out = next(next_out, None)
        while waiting and runs[waiting[0][1]].noted <= start:
            heappop(waiting)
        if waiting:
            i = waiting[0][1]
            found[i] += (min(end, runs[i].noted) - start) * 1e-9
    return found


def _gaps(runs: Sequence[PooledRun]) -> Iterator[tuple[float, float]]:
    """The times without a run, between the first and the last."""
    until = runs[0].start
    for run in runs:
        if run.start > until:
            yield until, run.start
        until = max(until, run.end)
