"""The table of a trace: the time of its kernels, added up by kernel, equation, line or program."""
from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from xlamini.core.console import printable
from xlamini.core.flags.environment_variables import near
from xlamini.inspection.layout import cut
from xlamini.inspection.timing.events import KernelRun, kernel_runs, time_covered
from xlamini.inspection.timing.programs import TracedProgram, TracedPrograms
from xlamini.inspection.units import shown

UNKNOWN_LINE, EAGER = "no line known", "operations outside of jit"
_COUNTS = {"kernel": "runs"}
_ROWS = 30
_WIDTH = 120


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


class TimeRow(NamedTuple):
    """A row of the table: `name` is a kernel, an equation, a line as `file:line`, or a program."""

    name: str
    seconds: float
    calls: int
    """Of the programs that it is in; of a kernel, its runs, which in a loop are more."""
    share: float
    """Of the time of all kernels."""
    detail: str
    """What a reader wants beside the name: the text of the line, the equation of the kernel."""


class TimeTable:
    """The rows of a trace, the longest time first; `str(table)` is the table as text.

    `covered` are the seconds in which at least one kernel ran, `span` those from the first kernel's start to the last
    one's end. Kernels that run beside each other, on threads or devices, add up to more than `covered`.
    """

    by: str
    rows: list[TimeRow]
    covered: float
    span: float

    def __init__(self, by: str, rows: list[TimeRow], covered: float, span: float):
        self.by, self.rows, self.covered, self.span = by, rows, covered, span

    @property
    def seconds(self) -> float:
        """The time of all kernels."""
        return sum(row.seconds for row in self.rows)

    def __str__(self) -> str:
        if not self.rows:
            return "The trace has no run of a kernel."
        head = f"{'time':>9} {'share':>6} {_COUNTS.get(self.by, 'calls'):>6} {'each':>9}  {self.by}"
        rows = [_shown(row) for row in self.rows[:_ROWS]]
        more = [f"… and {len(self.rows) - _ROWS} more"] if len(self.rows) > _ROWS else []
        return printable("\n".join(cut(line, _WIDTH) for line in [head, *rows, *more, self._summary()]))

    __repr__ = __str__

    def _summary(self) -> str:
        idle = f"; no kernel ran in {shown(self.span - self.covered, 'seconds')}"
        beside = ", beside each other," if self.seconds > 1.1 * self.covered else ","
        return (
            f"Kernels took {shown(self.seconds, 'seconds')}{beside} in {shown(self.covered, 'seconds')} of "
            f"{shown(self.span, 'seconds')} between the first and the last{idle}."
        )


def _shown(row: TimeRow) -> str:
    time, each = (shown(seconds, "seconds") for seconds in (row.seconds, row.seconds / row.calls))
    return f"{time:>9} {row.share:>6.1%} {row.calls:>6} {each:>9}  {row.name}  {row.detail}".rstrip()


def time_table(data: Any, programs: Iterable[Any] = (), by: str = "line") -> TimeTable:
    """The time of the kernels in a `ProfileData`, by "line", "kernel", "equation" or "program".

    `programs` are the executables by which kernels find their equations.
    """
    if by not in _KEYS:
        raise ValueError(f"table: by must be one of {', '.join(map(repr, _KEYS))}, got {by!r}{near(by, _KEYS)}")
    runs = kernel_runs(data)
    kernels = timed_kernels(runs, programs)
    key, detail = _KEYS[by]
    groups: dict[str, list[TimedKernel]] = {}
    for kernel in kernels:
        groups.setdefault(key(kernel), []).append(kernel)
    total = sum(k.seconds for k in kernels) or 1.0
    rows = [
        TimeRow(name, seconds := sum(k.seconds for k in some), _count(by, some), seconds / total, detail(some))
        for name, some in groups.items()
    ]
    span = (max(run.end for run in runs) - runs[0].start) * 1e-9 if runs else 0.0
    return TimeTable(by, sorted(rows, key=lambda row: -row.seconds), time_covered(runs), span)


def _count(by: str, kernels: list[TimedKernel]) -> int:
    """The calls of the programs that the kernels are in; a kernel by itself has runs."""
    calls = {(k.module, k.program): k.calls for k in kernels}
    return kernels[0].runs if by == "kernel" else sum(calls.values())


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
        found += [_timed(program, some, shared) for name, some in kernels.items() if not _is_body(program, name)]
    return found


def _is_body(program: TracedProgram | None, name: str) -> bool:
    """Whether the time of an operation is that of kernels which the trace has too."""
    if program is None:
        return name.split(".")[0] in ("while", "conditional", "call")
    return program.is_body(name)


def _timed(program: TracedProgram | None, runs: list[KernelRun], shared: bool) -> TimedKernel:
    module, identity, name = runs[0].module, runs[0].program, runs[0].kernel
    known: tuple[tuple[str, ...], bool, str] = (), False, EAGER if shared else ""
    if program is not None:
        module = program.name(module)
        place = EAGER if shared else program.place(name)
        known = program.labels(name), program.is_inserted(name), place
    seconds = sum(run.seconds for run in runs)
    return TimedKernel(module, identity, name, *known, seconds, len(runs), len({run.call for run in runs}))


def _line(kernel: TimedKernel) -> str:
    return kernel.place or UNKNOWN_LINE


def _line_text(kernels: list[TimedKernel]) -> str:
    """The text of a line; of kernels without one, their programs."""
    file, _, line = kernels[0].place.rpartition(":")
    return linecache.getline(file, int(line)).strip() if file else _modules(kernels)


def _equation(kernel: TimedKernel) -> str:
    return f"{kernel.labels[0]} of {kernel.module}" if kernel.labels else f"{kernel.name} of {kernel.module}"


def _place(kernels: list[TimedKernel]) -> str:
    file, _, line = kernels[0].place.rpartition(":")
    return f"{Path(file).name}:{line}" if file else ""


def _origin(kernels: list[TimedKernel]) -> str:
    """The equations of a kernel, and where they are."""
    kernel = kernels[0]
    labels = ", ".join(kernel.labels[:3]) + (", …" if len(kernel.labels) > 3 else "")
    inserted = " (put in by the compiler)" if kernel.is_inserted else ""
    return f"{labels}{inserted} {_place(kernels)}".strip()


def _modules(kernels: list[TimedKernel]) -> str:
    return ", ".join(dict.fromkeys(k.module for k in kernels))


_KEYS: dict[str, tuple[Callable[[TimedKernel], str], Callable[[list[TimedKernel]], str]]] = {
    "line": (_line, _line_text),
    "kernel": (lambda k: f"{k.name} of {k.module}", _origin),
    "equation": (_equation, _place),
    "program": (lambda k: k.module, lambda kernels: f"{len(kernels)} kernels"),
}
