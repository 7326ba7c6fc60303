"""A recording of the profiler, read: the runs of its kernels, and what the programs of the process say of them."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from xlamini.inspection.timing.events import KernelRun, kernel_runs, seconds_until_next, time_covered
from xlamini.inspection.timing.programs import TracedProgram, TracedPrograms

EAGER = "operations outside of jit"


class TimedKernel(NamedTuple):
    """A kernel of a program in a trace, with the time of its runs in seconds, and the calls of the program."""

    module: str
    program: str
    name: str
    labels: tuple[str, ...]
    is_inserted: bool
    place: str
    seconds: float
    runs: int
    calls: int
    of: TracedProgram | None = None
    """The program that it is in, where the process has it."""
    lasting: float = 0.0
    """Seconds with those until the next kernel of its call, as a CPU computes on threads that record nothing too."""
    devices: Mapping[str, float] = {}
    """For each device the seconds that its runs would take, if each were as fast as the fastest there."""


class Trace:
    """What a `ProfileData` says of kernels; `executables` are the programs by which they find their equations."""

    def __init__(self, data: Any, executables: Iterable[Any] = ()):
        self.data, self._executables = data, executables

    @cached_property
    def runs(self) -> list[KernelRun]:
        """The runs of kernels, in the order in which they began."""
        return kernel_runs(self.data)

    @cached_property
    def kernels(self) -> list[TimedKernel]:
        """The kernels, each with the time of all its runs."""
        return timed_kernels(self.runs, self._executables)

    @cached_property
    def of_library(self) -> frozenset[str]:
        """The programs of functions of the library that are called outside of jit."""
        return TracedPrograms(()).of_library

    @property
    def covered(self) -> float:
        """The seconds in which at least one kernel ran."""
        return time_covered(self.runs)

    @property
    def span(self) -> float:
        """The seconds from the first kernel's start to the last one's end."""
        return (max(run.end for run in self.runs) - self.runs[0].start) * 1e-9 if self.runs else 0.0


def timed_kernels(runs: Iterable[KernelRun], executables: Iterable[Any]) -> list[TimedKernel]:
    """The kernels of runs, with what their programs say of them."""
    by_program: dict[tuple[str, str], dict[str, list[KernelRun]]] = {}
    for run in runs:
        by_program.setdefault((run.module, run.program), {}).setdefault(run.kernel, []).append(run)
    programs = TracedPrograms(executables)
    found: list[TimedKernel] = []
    for (module, _), kernels in by_program.items():
        program = programs.find(module, kernels)
        shared = module in programs.of_library
        own = {name: some for name, some in kernels.items() if not _is_body(program, name)}
        lasting = seconds_until_next(run for some in own.values() for run in some)
        found += [_timed(program, some, shared, lasting[name]) for name, some in own.items()]
    return found


def _is_body(program: TracedProgram | None, name: str) -> bool:
    """Whether the time of an operation is that of kernels which the trace has too."""
    if program is None:
        return name.split(".")[0] in ("while", "conditional", "call")
    return program.is_body(name)


def _timed(program: TracedProgram | None, runs: list[KernelRun], shared: bool, lasting: float) -> TimedKernel:
    module, identity, name = runs[0].module, runs[0].program, runs[0].kernel
    known: tuple[tuple[str, ...], bool, str] = (), False, EAGER if shared else ""
    if program is not None:
        module = program.name(module)
        place = EAGER if shared else program.place(name)
        known = program.labels(name), program.is_inserted(name), place
    seconds = sum(run.seconds for run in runs)
    counts = len(runs), len({run.call for run in runs})
    return TimedKernel(module, identity, name, *known, seconds, *counts, program, lasting, _by_device(runs))


def _by_device(runs: list[KernelRun]) -> dict[str, float]:
    """What each device has to do: other programs of the machine hold single runs up, but not all of them."""
    found: dict[str, list[float]] = {}
    for run in runs:
        found.setdefault(run.device, []).append(run.seconds)
    return {device: min(seconds) * len(seconds) for device, seconds in found.items()}
