"""The calls of programs in a recording, each from its first kernel to its last.

A large program may run in segments, which are programs of the same name. The process that compiled it knows their
order. Where a recording has been read from a file, each is a call of its own.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from xlamini.inspection.timing.trace.runs import KernelRun, Program, Segment
from xlamini.runtime.execution.executable import SegmentPlace


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
    segments: Mapping[Segment, tuple[float, float]],
    names: Mapping[Program, str],
    places: Mapping[Program, SegmentPlace],
) -> dict[Segment, ProgramCall]:
    """The call that each segment is in, given the names of the programs, and the places of those that are parts."""
    last: dict[tuple[str, str], list[Segment]] = {}
    parts: list[tuple[str, str, list[Segment]]] = []
    for segment in segments:
        name = segment[0][0], names[segment[0]]
        if not _goes_on([places.get(program) for program, _ in (*last.get(name, ()), segment)]):
            last[name] = []
            parts.append((*name, last[name]))
        last[name].append(segment)
    return {
        segment: call
        for process, name, some in parts
        for call in [ProgramCall(process, name, segments[some[0]][0], max(segments[part][1] for part in some))]
        for segment in some
    }


def _goes_on(places: Sequence[SegmentPlace | None]) -> bool:
    """Whether the last of these is the next part of a call that the others have begun."""
    order = () if places[-1] is None else places[-1].order
    own = [place.number for place in places if place is not None and place.order is order]
    return 1 < len(places) == len(own) and tuple(own) == order[: len(own)]
