"""Where the time of a script went: what its host did, the kernels of its lines, and what of it can be avoided."""
from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any

from xlamini.core.events import COMPILED, COMPILING, subscribe, unsubscribe
from xlamini.inspection.timing.causes.findings import TimeFindings, of_trace, worthwhile
from xlamini.inspection.timing.script.budget import MOST_CALLS, CallBudget
from xlamini.inspection.timing.script.causes import HOST_CAUSES
from xlamini.inspection.timing.script.record import ScriptRecord
from xlamini.inspection.timing.script.samples import Samples
from xlamini.inspection.timing.script.steps import StepCount, before_exit, before_termination
from xlamini.inspection.timing.script.text import script_text
from xlamini.inspection.timing.script.transfers import Transfers
from xlamini.inspection.timing.script.waits import HostWaits
from xlamini.inspection.timing.table import TimeTable
from xlamini.inspection.timing.trace.events import recorded
from xlamini.runtime.devices.clients import at_start, started_clients
from xlamini.runtime.profiler.recording import ProfileOptions, live_arrays
from xlamini.runtime.profiler.session import ProfileSession
from xlamini.staging.compile.ledger import Compilations, compilations
from xlamini.transforms.sharding.device_put import block_until_ready

RECORDED_SECONDS = 20.0
_SOURCES = 256
"""So many programs, whose functions may be gone in the end, can be inspected."""
_LONG = 200
"""A program of so many equations may be a Python loop, traced step by step."""


class ScriptProfile:
    """A context manager that records what runs in it; afterwards it is a report, and `str` its text.

    Kernels are recorded for `seconds` from the first compilation on, or `MOST_CALLS` calls of programs. It ends with
    the block, by `os._exit` or SIGTERM, or after `steps` calls of one program, and `on_end` is then called with it. A
    child that the script forks has none. With `inspects` the newest programs can be inspected though their functions
    are gone.
    """

    compiled: Compilations
    is_late: bool
    is_whole: bool
    recorded: ScriptRecord
    seconds: float
    transfers: Transfers
    waits: HostWaits
    wall: float

    def __init__(
        self,
        seconds: float = RECORDED_SECONDS,
        steps: int | None = None,
        on_end: Callable[[ScriptProfile], object] = lambda found: None,
        inspects: bool = False,
    ) -> None:
        options = ProfileOptions()
        options.python_tracer_level = 0
        self._session = ProfileSession(profiler_options=options)
        self._session.gives_way = True
        self.waits, self.transfers, self._samples = HostWaits(), Transfers(), Samples()
        self._stack, self._known, self._began, self._programs = ExitStack(), 0, 0.0, list[Any]()
        self._inspects, self._sources = inspects, deque[Any](maxlen=_SOURCES)
        self._timer = threading.Timer(seconds, self._end_of_kernels)
        self._timer.daemon = True
        self._budget = CallBudget(MOST_CALLS, self._end_of_kernels)
        self._listeners = self._begin, self._note  # objects by which they are found again
        self.wall, self.seconds, self.is_late = 0.0, seconds, False
        self._steps = None if steps is None else StepCount(steps, self.end)
        self._on_end, self._process, self._has_ended = on_end, os.getpid(), False

    def __enter__(self) -> ScriptProfile:
        self._known = len(compilations())
        for each in (self.waits, self.transfers, self._samples):
            self._stack.enter_context(each)
        for listener, kind in zip(self._listeners, (COMPILED, COMPILING), strict=True):
            subscribe(listener, kind)
        if started_clients():
            self._record()
        else:
            at_start.waiting.append(self._record)  # the script may yet say how many devices there are
        self._stack.enter_context(before_exit(self.end))
        self._stack.enter_context(before_termination(self.end))
        if self._steps is not None:
            self._stack.enter_context(self._steps)
        self._start, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop recording, and report; nothing if it has ended, or in a child."""
        if os.getpid() != self._process or self._has_ended:
            return
        self._has_ended = True
        cpu = self._stop()
        self.compiled = Compilations(list(compilations())[self._known :])
        report = self._session._report("profile")
        if said := recorded(report.trace.recordings[0].data)[0]:  # more precisely than this thread knows
            self._began = self._epoch + said * 1e-9
        self.recorded = ScriptRecord(
            self.wall, self.compiled, self.waits, self.transfers, self._samples.found, report, self.is_whole,
            self._began, self._programs, cpu,
        )  # fmt: skip
        self.kernels: TimeTable = self.recorded.lines
        self._on_end(self)

    def _stop(self) -> float:
        """Stop recording, when what the script has begun is done; the seconds of CPU that it took."""
        if self._record in at_start.waiting:
            at_start.waiting.remove(self._record)
            self._record()
        self.waits.at_end(_all_is_done)  # what it has begun is part of it
        self.wall, cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        for listener in self._listeners:
            unsubscribe(listener)
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()  # which may be ending the recording now
        self.is_whole = self._session.is_running
        self._stack.close()
        self.is_whole = self.is_whole and not self.is_late  # which a thread may have said meanwhile
        return cpu

    def _record(self) -> None:
        """Begin to record kernels."""
        self._stack.enter_context(self._session)
        self._stack.enter_context(self._budget)
        self._began = time.perf_counter()
        self._epoch = self._began - time.time()

    def _begin(self, event: object) -> None:
        """Let the time of the recording begin, with the first compilation."""
        unsubscribe(self._listeners[0])
        if self._timer.ident is None:
            self._timer.start()

    def _note(self, event: Any) -> None:
        """Keep a long program, which may repeat itself, and what those are made from that will be inspected."""
        program = event.program
        if self._inspects and program.source is not None:
            program.source.keep_names()
            self._sources.append(program.source)
        if program.ledger_entry is not None and len(program.pruned.eqns) >= _LONG:
            self._programs.append((program.ledger_entry, program.pruned))

    def _end_of_kernels(self) -> None:
        """End the recording, while the script goes on."""
        if self._session.is_running:
            self.is_late = True
            self._session.finish()

    def findings(self) -> TimeFindings:
        """What takes more than a twentieth of the time and can be avoided, the largest first."""
        return self._found

    @cached_property
    def _found(self) -> TimeFindings:
        of_host = (each for cause in HOST_CAUSES for each in cause(self.recorded))
        return worthwhile([*of_host, *of_trace(self.recorded.report.trace, self.recorded.watched)])

    def save(self, path: str | os.PathLike[str], say: Callable[[str], object] = lambda text: None) -> None:
        """Write the report as a page (`.html`) or as its content (`.json`); ValueError for another ending.

        `say` is told of each program that is compiled again for a page of its own.
        """
        self.recorded.report.save(path, self, say)

    def notes(self) -> list[str]:
        """What the report lacks."""
        partial = f"{self._why()}, and those from then on are not listed. Shares of kernels are of the time before."
        notes = [] if self.is_whole else [partial]
        if self._steps is not None and self._steps.function:
            notes.append(f"This is until {self._steps.function} had run {self._steps.steps} times; the script goes on.")
        return notes

    def _why(self) -> str:
        """Why the recording is not whole."""
        if not self.is_late:
            return "The script took a trace of its own"
        what = f"{MOST_CALLS} calls of programs" if self._budget.is_spent else f"{self.seconds:g} s"
        return f"Kernels were recorded for {what}"

    def __str__(self) -> str:
        return script_text(self.recorded, self.findings(), self.notes())


def _all_is_done() -> None:
    """Wait for what the script has begun; a program that failed is the script's matter."""
    with suppress(Exception):
        block_until_ready([x for x in live_arrays() if not x.is_deleted()])
