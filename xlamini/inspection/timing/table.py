"""The table of a trace: the time of its kernels, added up by kernel, equation, line or program."""
from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from xlamini.core.console import printable
from xlamini.core.flags.environment_variables import near
from xlamini.inspection.layout import table
from xlamini.inspection.timing.skew import Skew
from xlamini.inspection.timing.trace.calls import ProgramCall
from xlamini.inspection.timing.trace.events import time_covered
from xlamini.inspection.timing.trace.trace import TimedKernel, Trace
from xlamini.inspection.units import shown

UNKNOWN_LINE = "no line known"
DEVICE = "device"
_COUNTS = {"kernel": "runs"}
_ROWS = 30
_WIDTH = 120


class TimeRow(NamedTuple):
    """A row of the table: `name` is a kernel, an equation, a line as `file:line`, a program, or a device."""

    name: str
    seconds: float
    calls: int
    """Of programs, in which it ran; of a kernel, its runs, which in a loop are more."""
    share: float
    """Of the time of all kernels; of a device, the share of the time from the first kernel to the last."""
    detail: str
    """What a reader wants beside the name: the text of the line, the equation of the kernel."""


class TimeTable:
    """The rows of a trace, the longest time first, and devices in their order; `str(table)` is the table as text.

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
        head = "time", "share", _COUNTS.get(self.by, "calls"), "each", self.by
        return printable("\n".join([*table(head, [*map(_cells, self.rows)], _ROWS, range(4), _WIDTH), self._summary()]))

    __repr__ = __str__

    def _summary(self) -> str:
        idle = f"; no kernel ran in {shown(self.span - self.covered, 'seconds')}"
        beside = ", beside each other," if self.seconds > 1.1 * self.covered else ","
        return (
            f"Kernels took {shown(self.seconds, 'seconds')}{beside} in {shown(self.covered, 'seconds')} of "
            f"{shown(self.span, 'seconds')} between the first and the last{idle}."
        )


def _cells(row: TimeRow) -> list[str]:
    time, each = (shown(seconds, "seconds") for seconds in (row.seconds, row.seconds / row.calls))
    return [time, f"{row.share:.1%}", str(row.calls), each, f"{row.name}  {row.detail}".rstrip()]


def time_table(trace: Trace, by: str = "line") -> TimeTable:
    """The time of the kernels in a trace, by "line", "kernel", "equation" or "program"; by "device" that of each."""
    if by == DEVICE:
        return TimeTable(by, _of_devices(trace), trace.covered, trace.span)
    if by not in _KEYS:
        words = *_KEYS, DEVICE
        raise ValueError(f"table: by must be one of {', '.join(map(repr, words))}, got {by!r}{near(by, words)}")
    key, detail = _KEYS[by]
    groups: dict[str, list[TimedKernel]] = {}
    for kernel in trace.kernels:
        groups.setdefault(key(kernel), []).append(kernel)
    total = sum(k.seconds for k in trace.kernels) or 1.0
    rows = [
        TimeRow(name, seconds := sum(k.seconds for k in some), _count(by, some), seconds / total, detail(some))
        for name, some in groups.items()
    ]
    return TimeTable(by, sorted(rows, key=lambda row: -row.seconds), trace.covered, trace.span)


def _of_devices(trace: Trace) -> list[TimeRow]:
    """The devices in their order: the time in which each was busy, which has its waits in collectives, and was not."""
    rows, waited = list[TimeRow](), {wait.device: wait.waited for wait in Skew(trace).devices}
    for device, runs in trace.devices.items():
        busy, calls = time_covered(runs), {trace.calls[run.segment] for run in runs}
        idle, waits = (shown(max(seconds, 0.0), "seconds") for seconds in (trace.span - busy, waited.get(device, 0.0)))
        detail = f"idle {idle}; while busy, waited {waits} for others" if waited else f"idle {idle}"
        rows.append(TimeRow(device, busy, len(calls), busy / (trace.span or 1.0), detail))
    return rows


def _count(by: str, kernels: list[TimedKernel]) -> int:
    """The calls that the kernels ran in, in one of the processes; a kernel by itself has runs."""
    calls: dict[str, set[ProgramCall]] = {}
    for kernel in kernels:
        calls.setdefault(kernel.process, set()).update(kernel.calls)
    return kernels[0].runs if by == "kernel" else max(map(len, calls.values()))


def _line(kernel: TimedKernel) -> str:
    return kernel.place or UNKNOWN_LINE


def _line_text(kernels: list[TimedKernel]) -> str:
    """The text of a line, and where else its kernels may be from; of kernels without a line, their programs."""
    file, _, line = kernels[0].place.rpartition(":")
    if not file:
        return _modules(kernels)
    others = dict.fromkeys(_short(place) for kernel in kernels for place in kernel.or_places)
    instead = f"(or {', '.join(others)}: the trace cannot tell)" if others else ""
    # A trace from elsewhere may name anything: a pipe would never end.
    text = linecache.getline(file, int(line)).strip() if Path(file).is_file() else ""
    return f"{instead} {text}".strip()


def _equation(kernel: TimedKernel) -> str:
    return f"{kernel.labels[0]} of {kernel.module}" if kernel.labels else f"{kernel.name} of {kernel.module}"


def _place(kernels: list[TimedKernel]) -> str:
    return " or ".join(map(_short, filter(None, (kernels[0].place, *kernels[0].or_places))))


def _short(place: str) -> str:
    file, _, line = place.rpartition(":")
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
