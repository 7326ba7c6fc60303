"""The calls of programs in a recording, each from its first kernel to its last.

A program may run in segments, which are programs of the same name and other equations, one after another. A program of
the same name with the same equations is the function for other types.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from xlamini.inspection.timing.trace.events import KernelRun
from xlamini.inspection.timing.trace.trace import TimedKernel


class ProgramCall(NamedTuple):
    """When a call of a program began and ended, in nanoseconds."""

    start: float
    end: float


def labels_of_programs(kernels: Iterable[TimedKernel]) -> dict[str, set[str]]:
    """The equations of each program, by its number."""
    found: dict[str, set[str]] = {}
    for kernel in kernels:
        found.setdefault(kernel.program, set()).update(kernel.labels)
    return found


def calls_of(runs: Sequence[KernelRun], labels: Mapping[str, set[str]]) -> list[ProgramCall]:
    """The calls of one program; `runs` are those of its kernels, sorted by their starts.

    A segment that the call has not begun with, and that has none of its equations, goes on with it.
    """
    parts: dict[tuple[str, str], list[KernelRun]] = {}
    for run in runs:
        parts.setdefault((run.program, run.call), []).append(run)
    found: list[ProgramCall] = []
    head: str | None = None
    for (program, _), some in parts.items():
        part = ProgramCall(some[0].start, max(run.end for run in some))
        own, first = labels.get(program, set()), labels.get(head or "", set())
        if head is None or program == head or not own or own & first:
            head = program
            found.append(part)
        else:
            found[-1] = ProgramCall(found[-1].start, max(found[-1].end, part.end))
    return found
