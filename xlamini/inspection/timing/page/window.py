"""The part of a recording that a timeline shows: all of it, or the calls in the middle of the longest program."""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xlamini.inspection.timing.trace.calls import ProgramCall
from xlamini.inspection.timing.trace.runs import KernelRun, Segment

MOST_RUNS = 20_000
"""So many runs take a third of a megabyte on a page."""


class TimeWindow(NamedTuple):
    """`runs` are those between `start` and `end`; `focus` is one call in the middle, which a reader sees first."""

    runs: Sequence[KernelRun]
    start: float
    end: float
    focus: ProgramCall
    shown: str
    """What of the recording it is, in words."""


def window(runs: Sequence[KernelRun], calls_of: Mapping[Segment, ProgramCall], most: int = MOST_RUNS) -> TimeWindow:
    """The runs to draw, at most `most`; `runs` are sorted by their starts, `calls_of` has the calls that they are in.

    A recording with more of them is cut to whole calls of the program that took longest, from the middle on to both
    sides; a call with more, to its beginning.
    """
    if not runs:
        return TimeWindow((), 0.0, 0.0, ProgramCall("", "", 0.0, 0.0), "no run of a kernel")
    calls = _longest_calls(runs, calls_of)
    name, middle = calls[0].name, len(calls) // 2
    if len(runs) <= most:
        shown = f"all {len(runs)} runs of kernels, in which {name} was called {_times(len(calls))}"
        return TimeWindow(runs, runs[0].start, max(run.end for run in runs), calls[middle], shown)
    first, last = _widened(calls, middle, [run.start for run in runs], most)
    some = _between(runs, calls[first].start, calls[last].end)
    of = f"{last - first + 1} of {len(calls)} calls of {name}"
    cut = f", cut to {most} of {len(some)} runs of kernels" if len(some) > most else ""
    kept = some[:most]
    end = max(run.end for run in kept)
    focus = calls[middle] if not cut else calls[middle]._replace(start=kept[0].start, end=end)
    return TimeWindow(kept, kept[0].start, end, focus, f"{of}{cut}; the recording has {len(runs)} runs of kernels")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _longest_calls(runs: Sequence[KernelRun], calls_of: Mapping[Segment, ProgramCall]) -> list[ProgramCall]:
    """The calls of the program whose kernels took longest in a process."""
    programs: dict[tuple[str, str], dict[ProgramCall, float]] = {}
    for run in runs:
        call = calls_of[run.segment]
        calls = programs.setdefault((call.process, call.name), {})
        calls[call] = calls.get(call, 0.0) + run.end - run.start
    return [*max(programs.values(), key=lambda calls: sum(calls.values()))]


def _widened(calls: Sequence[ProgramCall], middle: int, starts: Sequence[float], most: int) -> tuple[int, int]:
    """The first and the last of the calls around the middle one that have at most `most` runs together."""

    def fits(first: int, last: int) -> bool:
        inside = first >= 0 and last < len(calls)
        return inside and bisect_left(starts, calls[last].end) - bisect_left(starts, calls[first].start) <= most

    first = last = middle
    while fits(first - 1, last) or fits(first, last + 1):
        is_later = fits(first, last + 1) and (last - middle <= middle - first or not fits(first - 1, last))
        first, last = (first, last + 1) if is_later else (first - 1, last)
    return first, last


def _between(runs: Sequence[KernelRun], start: float, end: float) -> Sequence[KernelRun]:
    starts = [run.start for run in runs]
    return runs[bisect_left(starts, start) : bisect_left(starts, end)]
