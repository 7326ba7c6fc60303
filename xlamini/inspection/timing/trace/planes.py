"""The planes of a recording: which of their events are runs of kernels, and which are copies.

A CPU's thread has an event for each operation, with the stats `hlo_op` and `hlo_module`.

A GPU, `/device:GPU:0`, has a line for each stream. A kernel's stats are `hlo_op` and `hlo_module`, and a copy's stat
`memcpy_details` has its bytes. Its other lines are derived from these. No event says which call of a program it is of.

A TPU, `/device:TPU:0`, has the calls of programs in the line "XLA Modules", as `jit_step(1234)`, and in "XLA Ops" their
operations, whose names are instructions of HLO. "Async XLA Ops" has copies and collectives that go on beside these, so
that their time is no kernel's.
"""
from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from xlamini.inspection.timing.trace.host import HostActivity, kind_of_activity
from xlamini.inspection.timing.trace.runs import KernelRun, Transfer
from xlamini.inspection.xla.hlo import BODIES
from xlamini.runtime.hlo.instructions import instruction

_DEVICE = re.compile(r"/device:(GPU|TPU):\d+")
_COPY = re.compile(r"Memcpy(\w+)")
_SIZE = re.compile(r"\bsize:(\d+)")
_KERNEL = re.compile(r"[\w.-]+")
_OF_RUNTIME = {"ParseArguments"}
_THREADS_OF_XLA = "tf_"
_CALL = re.compile(r"(.*)\((\d+)\)")


def plane_events(plane: Any) -> Iterable[KernelRun | Transfer | HostActivity]:
    """The runs of kernels, the copies, and what the host did, in a `ProfilePlane`."""
    device = _DEVICE.fullmatch(plane.name)
    if device is None:
        return _of_threads(plane)
    return _of_gpu(plane) if device[1] == "GPU" else _of_tpu(plane)


class _Kinds(dict[str, Any]):
    """By the names of a thread's events: whether it may be a kernel, what it was that the host did, or False.

    All else is much more, and the stats of an event take the most time, so that these are not read.
    """

    def __missing__(self, name: str) -> Any:
        self[name] = kind_of_activity(name) or (name not in _OF_RUNTIME and bool(_KERNEL.fullmatch(name)))
        return self[name]


def _of_threads(plane: Any) -> Iterator[KernelRun | HostActivity]:
    kinds = _Kinds()
    for line in plane.lines:
        is_of_host = plane.name.startswith("/host:CPU") and not line.name.startswith(_THREADS_OF_XLA)
        for event in line.events:
            kind = kinds[event.name]
            if kind is True:
                stats = dict(event.stats)
                if "hlo_op" in stats and "hlo_module" in stats:
                    yield _run(plane.name, event, stats)
            elif kind and is_of_host:
                yield HostActivity(kind[0], kind[1], event.start_ns, event.end_ns)


def _run(plane: str, event: Any, stats: dict[str, Any]) -> KernelRun:
    ordinal = stats.get("device_ordinal")
    device = plane if ordinal is None or plane.startswith("/device:") else f"device {ordinal}"
    kernel = str(stats.get("hlo_op") or event.name).rpartition("::")[2]  # with the operations around it
    module = str(stats.get("hlo_module", "")) if "hlo_op" in stats else ""
    program = f"{module}({stats['program_id']})" if "program_id" in stats else module
    return KernelRun(module, program, kernel, device, str(stats.get("run_id", "")), event.start_ns, event.end_ns)


def _of_gpu(plane: Any) -> Iterator[KernelRun | Transfer]:
    runs: list[KernelRun] = []
    for line in plane.lines:
        for event in line.events if line.name.startswith("Stream") else ():
            stats = dict(event.stats)
            if "memcpy_details" in stats:
                yield _transfer(plane.name, event, str(stats["memcpy_details"]))
            if "hlo_op" in stats or "kernel_details" in stats:
                runs.append(_run(plane.name, event, stats))
    yield from _with_calls(sorted(runs, key=lambda run: run.start))


def _transfer(plane: str, event: Any, details: str) -> Transfer:
    copy, size = _COPY.match(event.name), _SIZE.search(details)
    direction, count = copy[1] if copy else event.name, int(size[1]) if size else 0
    return Transfer(plane, direction, count, event.start_ns, event.end_ns)


def _with_calls(runs: list[KernelRun]) -> Iterator[KernelRun]:
    """The runs with numbers of calls. A kernel outside of loops runs once in each, so that the rarest one tells."""
    programs: dict[str, list[KernelRun]] = {}
    for run in runs:
        programs.setdefault(run.program, []).append(run)
    for some in programs.values():
        counts = Counter(run.kernel for run in some)
        rarest = min(counts, key=lambda kernel: counts[kernel])
        starts = [run.start for run in some if run.kernel == rarest]
        yield from (run._replace(call=run.call or str(max(bisect_right(starts, run.start), 1))) for run in some)


class _ModuleEvent(NamedTuple):
    """An event of the line "XLA Modules"."""

    start: float
    end: float
    module: str
    program: str
    number: str


def _of_tpu(plane: Any) -> Iterator[KernelRun]:
    lines = {line.name: line for line in plane.lines}
    calls = _calls(lines["XLA Modules"].events if "XLA Modules" in lines else ())
    starts, known = [call.start for call in calls], dict[str, tuple[str, str]]()
    for event in lines["XLA Ops"].events if "XLA Ops" in lines else ():
        kernel, opcode = known.setdefault(event.name, _operation(event.name))
        if opcode not in BODIES:  # what is in a loop has events of its own
            call = _around(calls, bisect_right(starts, event.start_ns) - 1, event)
            yield KernelRun(
                call.module, call.program, kernel, plane.name, call.number, event.start_ns, event.end_ns, opcode
            )


def _calls(events: Iterable[Any]) -> list[_ModuleEvent]:
    found: list[_ModuleEvent] = []
    for number, event in enumerate(sorted(events, key=lambda event: event.start_ns)):
        named = _CALL.fullmatch(event.name)
        run = str(dict(event.stats).get("run_id", number))
        found.append(_ModuleEvent(event.start_ns, event.end_ns, named[1] if named else event.name, event.name, run))
    return found


def _around(calls: list[_ModuleEvent], index: int, event: Any) -> _ModuleEvent:
    """The call that an operation is in; one without a name if the trace lacks it."""
    if index >= 0 and event.start_ns < calls[index].end:
        return calls[index]
    return _ModuleEvent(event.start_ns, event.end_ns, "", "", "")


def _operation(name: str) -> tuple[str, str]:
    """The name and opcode of an operation, whose event has its text, or its name alone."""
    found = instruction(name)
    return (found.name, found.opcode) if found else (name.lstrip("%"), "")
