"""The calls of a program in a trace: when each began and ended, what ran meanwhile, and on how many threads.

An event of the CPU ends when the kernel was handed out to the threads of a pool, which record nothing of it. But the
thread that notes the end of the work writes an event `end: kernel`, after it ran the kernels that waited for it. So a
kernel goes on to that event, or to the next kernel of that thread, whichever is first.
"""
from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from xlamini.inspection.timing.trace.events import kernel_runs, reading
from xlamini.inspection.timing.trace.runs import KernelRun

CALL = "xlamini: a measured call"
"""The annotation around each call."""
_WORK, _END = "ThreadpoolListener::StartRegion", "end: "
Thread = tuple[str, str]


class PooledRun(NamedTuple):
    """A run of a kernel, from its first moment to its last; from `handed_out` on, threads of a pool computed it.

    It may have gone on until its end was `noted`.
    """

    kernel: str
    device: str
    start: float
    handed_out: float
    end: float
    noted: float


class ProfiledCall(NamedTuple):
    """A call with its runs in the order in which they began, and how many threads worked; times are in nanoseconds."""

    start: float
    end: float
    runs: list[PooledRun]
    threads: int


def profiled_calls(data: Any, programs: Collection[str], kernels: Collection[str]) -> list[ProfiledCall]:
    """The calls under annotations in a `ProfileData`, with the runs of these kernels of programs of these names.

    A call begins before its first kernel, and ends after its last one, which the runs alone do not tell.
    """
    events = CallEvents(data)
    own = (run for run in kernel_runs(data) if run.program in programs and run.kernel in kernels)
    runs = list(map(events.pooled, own))
    starts = [run.start for run in runs]

    def inside(start: float, end: float) -> list[PooledRun]:
        return runs[bisect_left(starts, start) : bisect_left(starts, end)]

    return [ProfiledCall(*each, inside(*each), events.threads(*each)) for each in sorted(events.windows)]


def recorded_calls(events: CallEvents, runs: Iterable[KernelRun]) -> list[ProfiledCall]:
    """The calls that runs of one program are of, each from its first kernel to its last."""
    calls: dict[str, list[PooledRun]] = {}
    for run in runs:
        calls.setdefault(run.call, []).append(events.pooled(run))
    spans = [(some[0].start, max(run.end for run in some), some) for some in calls.values()]
    return [ProfiledCall(start, end, some, events.threads(start, end)) for start, end, some in spans]


class CallEvents:
    """What a trace has beside the runs of kernels."""

    def __init__(self, data: Any):
        self.windows: list[tuple[float, float]] = []
        self._work: dict[Thread, list[float]] = defaultdict(list)
        self._kernels: dict[Thread, list[float]] = defaultdict(list)
        self._tokens: dict[tuple[str, float], Any] = {}
        self._ends: dict[Any, tuple[Thread, float]] = {}
        with reading():
            for thread, event in _events(data):
                self._add(thread, event)
        for times in (*self._work.values(), *self._kernels.values()):
            times.sort()

    def _add(self, thread: Thread, event: Any) -> None:
        name, start = event.name, event.start_ns
        if name == CALL:
            self.windows.append((start, event.end_ns))
        elif name == _WORK:
            self._work[thread].append(start)
        elif name.startswith(_END):
            self._ends[dict(event.stats).get("_c")] = thread, start
        elif "::" not in name and "hlo_op" in (stats := dict(event.stats)):
            self._kernels[thread].append(start)
            self._tokens[str(stats["hlo_op"]), start] = stats.get("_p")

    def pooled(self, run: KernelRun) -> PooledRun:
        """A run to the end of its work in a pool."""
        token = self._tokens.get((run.kernel, run.start))
        found = None if token is None else self._ends.get(token)
        end, noted = (run.end, run.end) if found is None else (self._last(*found, run.end), found[1])
        return PooledRun(run.kernel, run.device, run.start, run.end, max(end, run.end), max(noted, run.end))

    def _last(self, thread: Thread, noted: float, handed_out: float) -> float:
        """When a thread that noted the end of a kernel went on."""
        starts = self._kernels[thread]
        following = bisect_left(starts, handed_out)
        return min(noted, starts[following]) if following < len(starts) else noted

    def threads(self, start: float, end: float) -> int:
        """How many threads ran kernels, or work of a pool, between these times."""
        found = {thread for each in (self._work, self._kernels) for thread, times in each.items()
                 if bisect_left(times, start) < bisect_left(times, end)}  # fmt: skip
        return len(found)


def _events(data: Any) -> Iterator[tuple[Thread, Any]]:
    for plane in data.planes:
        for line in plane.lines:
            for event in line.events:
                yield (plane.name, line.name), event
