"""The calls of programs in a recording, each from its first kernel to its last.

A large program may run in segments, which are programs of the same name. The process that compiled it knows their
order. Where a recording has been read from a file, each is a call of its own.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xlamini.inspection.timing.trace.runs import KernelRun, Program, Segment
from xlamini.runtime.execution.executable import SegmentPlace

_Times = Mapping[Segment, tuple[float, float]]

class ProgramCall(NamedTuple):
    """When a call of the program of a name began and ended, in nanoseconds."""

    process: str
    name: str
    start: float
    end: float


def segments_of(runs: Iterable[KernelRun]) -> dict[Segment, tuple[float, float]]:
    """When each segment began and ended, in the order in which they began, which is that of the runs."""
    found: dict[Segment, tuple[float, float]] = {}
    for run in runs:
        start, end = found.get(run.segment, (run.start, run.end))
        found[run.segment] = start, max(end, run.end)
    return found


def calls_of(
    segments: _Times, names: Mapping[Program, str], places: Mapping[Program, SegmentPlace]
) -> dict[Segment, ProgramCall]:
    """The call that each segment is in, given the names of the programs, and the places of those that are parts."""
    calls: list[list[Segment]] = []
    last: dict[tuple[str, str], list[Segment]] = {}
    for segment in segments:
        program, _ = segment
        name = program[0], names[program]
        if name in last and _goes_on([part for part, _ in last[name]], program, places):
            last[name].append(segment)
        else:
            last[name] = [segment]
            calls.append(last[name])
    return {part: call for parts in calls for call in [_call(parts, segments, names)] for part in parts}


def _goes_on(begun: list[Program], program: Program, places: Mapping[Program, SegmentPlace]) -> bool:
    """Whether a program is the next part of a call."""
    first, place = places.get(begun[0]), places.get(program)
    if first is None or place is None or first.order is not place.order or first.number != first.order[0]:
        return False
    return place.order[len(begun) : len(begun) + 1] == (place.number,)


def _call(parts: list[Segment], segments: _Times, names: Mapping[Program, str]) -> ProgramCall:
    (program, _), end = parts[0], max(segments[part][1] for part in parts)
    return ProgramCall(program[0], names[program], segments[parts[0]][0], end)
