"""A recording of the profiler, read: the runs of its kernels, and what the programs of the process say of them."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from xlamini.inspection.timing.trace.calls import ProgramCall, calls_of, segments_of
from xlamini.inspection.timing.trace.events import (
    TraceEvents,
    recorded,
    seconds_until_next,
    time_covered,
    trace_events,
)
from xlamini.inspection.timing.trace.files import Recording
from xlamini.inspection.timing.trace.host import HostActivity
from xlamini.inspection.timing.trace.programs import TracedProgram, TracedPrograms
from xlamini.inspection.timing.trace.runs import KernelRun, Program, Segment, Transfer
from xlamini.inspection.timing.trace.spans import Spans
from xlamini.runtime.execution.executable import SegmentPlace

_Event = TypeVar("_Event", KernelRun, Transfer)
EAGER = "operations outside of jit"


class TimedKernel(NamedTuple):
    """A kernel of a program in a trace, with the time of its runs in seconds, and the calls that it ran in."""

    module: str
    program: str
    name: str
    labels: tuple[str, ...]
    is_inserted: bool
    place: str
    seconds: float
    runs: int
    calls: frozenset[ProgramCall]
    of: TracedProgram | None = None
    """The program that it is in, where the process has it."""
    or_places: tuple[str, ...] = ()
    """The places in other programs of which it may be, as where two functions have equal equations."""
    lasting: float = 0.0
    """Seconds with those until the next kernel of its call, as a CPU computes on threads that record nothing too."""
    devices: Mapping[str, float] = {}
    """For each device the seconds that its runs would take, if each were as fast as the fastest there."""
    process: str = ""
    """That which recorded it, where there are several."""


class Trace:
    """What the recordings of one process, or of several, say of kernels.

    `executables` are the programs of this process, by which kernels find their equations. A trace from files has
    those of its recordings alone.
    """

    recordings: Sequence[Recording]

    def __init__(self, recordings: Sequence[Recording], executables: Iterable[Any] = ()):
        self.recordings, self._executables = recordings, executables

    @cached_property
    def _events(self) -> TraceEvents:
        found = [trace_events(recording.data) for recording in self.recordings]
        if len(found) == 1 and not self.recordings[0].process:
            return found[0]
        runs, transfers = list[KernelRun](), list[Transfer]()
        begins = [recorded(recording.data)[0] for recording in self.recordings]
        for recording, own, begin in zip(self.recordings, found, begins, strict=True):
            later = (begin - min(begins)) if min(begins) else 0.0  # each file counts from its own beginning
            runs += (_moved(run, recording.process, later) for run in own.runs)
            transfers += (_moved(copy, recording.process, later) for copy in own.transfers)
        return TraceEvents(sorted(runs, key=_start), sorted(transfers, key=_start), found[0].host)

    @property
    def runs(self) -> list[KernelRun]:
        """The runs of kernels, in the order in which they began."""
        return self._events.runs

    @property
    def transfers(self) -> list[Transfer]:
        """The copies of devices, in the order in which they began; a CPU has none."""
        return self._events.transfers

    @property
    def host(self) -> list[HostActivity]:
        """What the host of the first process did, in the order in which it began."""
        return self._events.host

    @cached_property
    def devices(self) -> dict[str, list[KernelRun]]:
        """The runs of each device, in the order of processes and devices; with the process, if there are several."""
        found: dict[tuple[str, str], list[KernelRun]] = {}
        for run in self.runs:
            found.setdefault((run.process if len(self.recordings) > 1 else "", run.device), []).append(run)
        order = sorted(found, key=lambda key: (key[0], *_by_number(key[1])))
        return {" ".join(filter(None, key)): found[key] for key in order}

    @cached_property
    def _ran(self) -> dict[Program, dict[str, list[KernelRun]]]:
        """The runs by program and kernel."""
        found: dict[Program, dict[str, list[KernelRun]]] = {}
        for run in self.runs:
            found.setdefault(run.of, {}).setdefault(run.kernel, []).append(run)
        return found

    @cached_property
    def programs(self) -> dict[Program, list[TracedProgram]]:
        """The programs that ran; several where they cannot be told apart, none where the process no longer had it."""
        return {key: self._sources[key[0]].find(*key[1:], kernels) for key, kernels in self._ran.items()}

    @cached_property
    def segments(self) -> dict[Segment, tuple[float, float]]:
        """When each segment of a call began and ended, in nanoseconds, in the order in which they began."""
        return segments_of(self.runs)

    @cached_property
    def running(self) -> Spans:
        """When programs ran on a device, in seconds from the beginning of the recording."""
        return Spans((start * 1e-9, end * 1e-9) for start, end in self.segments.values())

    @cached_property
    def calls(self) -> dict[Segment, ProgramCall]:
        """The call that each segment is in."""
        names, places = dict[Program, str](), dict[Program, SegmentPlace]()
        for key, programs in self.programs.items():
            names[key] = " or ".join(dict.fromkeys(each.name(key[1]) for each in programs)) or key[1]
            if place := next((each.segment for each in programs if each.segment is not None), None):
                places[key] = place
        return calls_of(self.segments, names, places)

    @cached_property
    def _sources(self) -> dict[str, TracedPrograms]:
        return {each.process: TracedPrograms(self._executables, each.programs) for each in self.recordings}

    @cached_property
    def kernels(self) -> list[TimedKernel]:
        """The kernels, each with the time of all its runs."""
        found: list[TimedKernel] = []
        for key, kernels in self._ran.items():
            programs = self.programs[key]
            own = {name: some for name, some in kernels.items() if not _is_body(programs, name)}
            lasting = seconds_until_next(run for some in own.values() for run in some)
            found += [self._timed(programs, some, lasting[name]) for name, some in own.items()]
        return found

    def _timed(self, programs: Sequence[TracedProgram], runs: list[KernelRun], lasting: float) -> TimedKernel:
        run, calls = runs[0], frozenset(self.calls[run.segment] for run in runs)
        name = run.kernel
        programs = sorted((each for each in programs if each.knows([name])), key=lambda each: each.place(name))
        first = programs[0] if programs else None
        known = (first.labels(name), first.is_inserted(name)) if first is not None else ((), False)
        own = [EAGER] if run.module in self.of_library else (each.place(name) for each in programs)
        place, *others = [*dict.fromkeys(filter(None, own))] or [""]
        return TimedKernel(
            self.calls[run.segment].name, run.program, name, *known, place, sum(run.seconds for run in runs),
            len(runs), calls, first, tuple(others), lasting, _by_device(runs), run.process,
        )  # fmt: skip

    def program(self, module: str, kernel: str) -> TracedProgram | None:
        """A program of this name with this kernel; None if none is known."""
        named = (program for key, found in self.programs.items() if key[1] == module for program in found)
        return next((program for program in named if program.knows([kernel])), None)

    @cached_property
    def of_library(self) -> frozenset[str]:
        """The programs of functions of the library that are called outside of jit."""
        return next(iter(self._sources.values())).of_library

    @cached_property
    def recorded(self) -> float:
        """The seconds of the first process's recording."""
        start, end = recorded(self.recordings[0].data)
        return (end - start) * 1e-9

    @property
    def covered(self) -> float:
        """The seconds in which at least one kernel ran."""
        return time_covered(self.runs)

    @property
    def span(self) -> float:
        """The seconds from the first kernel's start to the last one's end."""
        return (max(run.end for run in self.runs) - self.runs[0].start) * 1e-9 if self.runs else 0.0


def _start(event: KernelRun | Transfer) -> float:
    return event.start


def _moved(event: _Event, process: str, later: float) -> _Event:
    return event._replace(process=process, start=event.start + later, end=event.end + later)


def _by_number(device: str) -> tuple[str, int]:
    """The device's name before its number, and the number, so that 10 is behind 9."""
    name = device.rstrip("0123456789")
    return name, int(device[len(name) :] or 0)


def _is_body(programs: Sequence[TracedProgram], name: str) -> bool:
    """Whether the time of an operation is that of kernels which the trace has too."""
    if not programs:
        return name.split(".")[0] in ("while", "conditional", "call")
    return any(program.is_body(name) for program in programs)


def _by_device(runs: list[KernelRun]) -> dict[str, float]:
    """What each device has to do: other programs of the machine hold single runs up, but not all of them."""
    found: dict[str, list[float]] = {}
    for run in runs:
        found.setdefault(run.device, []).append(run.seconds)
    return {device: min(seconds) * len(seconds) for device, seconds in found.items()}
