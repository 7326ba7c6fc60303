"""The events of a recording that tell where time went: runs of kernels, copies of devices, what the host did."""
from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, NamedTuple

from xlamini.inspection.timing.trace.host import HostActivity, outermost
from xlamini.inspection.timing.trace.planes import plane_events
from xlamini.inspection.timing.trace.runs import KernelRun, Transfer


@contextmanager
def reading() -> Generator[None]:
    """The guard under which a `ProfileData` is read."""
    with warnings.catch_warnings():
        # Python 3.13 warns of a class that C++ makes, where a warning that is an error would end the process.
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def kernel_runs(data: Any) -> list[KernelRun]:
    """The runs of kernels in a `ProfileData`, in the order in which they began."""
    return trace_events(data).runs


class TraceEvents(NamedTuple):
    """The events of a recording, each list in the order in which they began; a CPU has no transfers."""

    runs: list[KernelRun]
    transfers: list[Transfer]
    host: list[HostActivity]


def trace_events(data: Any) -> TraceEvents:
    """What a `ProfileData` tells, which is read once, as there may be millions of events."""
    with reading():
        found = sorted((e for plane in data.planes for e in plane_events(plane)), key=lambda event: event.start)
    runs = [event for event in found if isinstance(event, KernelRun)]
    # A thread of the host has the operations of a device's program too, while it starts them.
    of_devices = {run.module for run in runs if _is_on_device(run)}
    own = [run for run in runs if _is_on_device(run) or run.module not in of_devices] if of_devices else runs
    host = outermost(event for event in found if isinstance(event, HostActivity))
    return TraceEvents(own, [event for event in found if isinstance(event, Transfer)], host)


def recorded(data: Any) -> tuple[int, int]:
    """When a recording began, which its events count from, and ended, in nanoseconds; 0 if it does not say."""
    with reading():
        plane = data.find_plane_with_name("Task Environment")
        stats = {} if plane is None else dict(plane.stats)
    return int(stats.get("profile_start_time", 0)), int(stats.get("profile_stop_time", 0))


def _is_on_device(run: KernelRun) -> bool:
    return run.device.startswith("/device:")


def time_covered(runs: Iterable[KernelRun]) -> float:
    """The seconds in which at least one of the runs went on; they are sorted by their starts."""
    total, until = 0.0, float("-inf")
    for run in runs:
        total += max(run.end - max(run.start, until), 0.0)
        until = max(until, run.end)
    return total * 1e-9


def seconds_until_next(runs: Iterable[KernelRun]) -> dict[str, float]:
    """For each kernel of a program the seconds of its runs, each until the next one of its call begins or it ends."""
    found: dict[str, float] = {}
    ahead: dict[tuple[str, str], float] = {}
    for run in sorted(runs, key=lambda run: -run.start):
        place = run.device, run.call
        end = max(run.end, ahead.get(place, run.end))
        ahead[place] = run.start
        found[run.kernel] = found.get(run.kernel, 0.0) + (end - run.start) * 1e-9
    return found
