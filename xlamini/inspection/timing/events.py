"""The runs of kernels in a trace of the profiler.

An event that names an operation of HLO, by the stats `hlo_op` and `hlo_module`, is the run of a kernel: on the CPU in
the lines of its threads, on a GPU in those of its streams.
"""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class KernelRun(NamedTuple):
    """One run of a kernel. `program` tells programs of the same `module`, a name, apart; times are in nanoseconds.

    `call` is the same for all kernels of one call of a program.
    """

    module: str
    program: str
    kernel: str
    device: str
    call: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return (self.end - self.start) * 1e-9


def kernel_runs(data: Any) -> list[KernelRun]:
    """The runs of kernels in a `ProfileData`, in the order in which they began."""
    with warnings.catch_warnings():
        # Python 3.13 warns of a class that C++ makes, where a warning that is an error would end the process.
        warnings.simplefilter("ignore", DeprecationWarning)
        return sorted(_kernel_runs(data), key=lambda run: run.start)


def _kernel_runs(data: Any) -> Iterator[KernelRun]:
    for plane in data.planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats and "hlo_module" in stats:
                    yield _run(plane.name, event, stats)


def _run(plane: str, event: Any, stats: dict[str, Any]) -> KernelRun:
    ordinal = stats.get("device_ordinal")
    device = plane if ordinal is None or plane.startswith("/device:") else f"device {ordinal}"
    program, call = (str(stats.get(name, "")) for name in ("program_id", "run_id"))
    return KernelRun(
        str(stats["hlo_module"]), program, str(stats["hlo_op"]), device, call, event.start_ns, event.end_ns
    )


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
