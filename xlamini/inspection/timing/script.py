"""Where the time of a script went: its Python, compiling, waiting for the device, and the kernels of its lines."""
from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from xlamini.core.console import printable
from xlamini.core.events import COMPILED, subscribe, unsubscribe
from xlamini.inspection.timing.table import TimeTable
from xlamini.inspection.timing.trace import EAGER
from xlamini.inspection.timing.waits import HostWaits, LineWait
from xlamini.inspection.units import shown
from xlamini.runtime.profiler.recording import ProfileOptions, live_arrays
from xlamini.runtime.profiler.session import ProfileSession
from xlamini.staging.compile.ledger import Compilation, Compilations, Function, compilations
from xlamini.transforms.sharding.device_put import block_until_ready

RECORDED_SECONDS = 20.0
_LEAST_SHARE = 0.05
"""The share of the wall time from which on something is a finding."""
_OFTEN = 10
"""So many waits of one line are a loop's."""
_MANY = 1000
"""So many operations by themselves are worth a word."""
_ROWS = 10


class ScriptFinding(NamedTuple):
    """Something that takes a share of the time, in words, with a fix."""

    share: float
    text: str

    def __str__(self) -> str:
        return f"{self.share:4.0%}  {self.text}"


class ScriptProfile:
    """A context manager that records what runs in it; afterwards it is a report, and `str` its text.

    Kernels are recorded for `seconds` from the first compilation on, as each run takes about a kilobyte.
    """

    compiled: Compilations
    is_late: bool
    is_whole: bool
    seconds: float
    waits: HostWaits
    wall: float

    def __init__(self, seconds: float = RECORDED_SECONDS) -> None:
        options = ProfileOptions()
        options.python_tracer_level = 0
        self._session, self.waits = ProfileSession(profiler_options=options), HostWaits()
        self._session.gives_way = True
        self._stack, self._known = ExitStack(), 0
        self._timer = threading.Timer(seconds, self._end_of_time)
        self._timer.daemon = True
        self._listener = self._begin  # one object, by which it is found again
        self.wall, self.seconds, self.is_late = 0.0, seconds, False

    def __enter__(self) -> ScriptProfile:
        self._known = len(compilations())
        self._stack.enter_context(self._session)
        self._stack.enter_context(self.waits)
        subscribe(self._listener, COMPILED)
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(Exception):  # of a program that failed, which is the script's matter
            block_until_ready([x for x in live_arrays() if not x.is_deleted()])  # what it has begun is part of it
        self.wall = time.perf_counter() - self._start
        unsubscribe(self._listener)
        self._timer.cancel()
        self.is_whole = self._session.is_running
        self._stack.close()
        self.compiled = Compilations(list(compilations())[self._known :])
        self.kernels: TimeTable = self._session.table()
        devices = self._session.table("device")
        self._devices = [str(devices), str(self._session.skew())] if len(devices.rows) > 1 else []

    def _begin(self, event: object) -> None:
        """Let the time of the recording begin, with the first compilation."""
        unsubscribe(self._listener)
        if self._timer.ident is None:
            self._timer.start()

    def _end_of_time(self) -> None:
        if self._session.is_running:
            self.is_late = True
            self._session.finish()

    def findings(self) -> list[ScriptFinding]:
        """What takes more than a twentieth of the time and can be avoided, the largest first."""
        found = [*self._waiting(), *self._compiling(), *self._eager()]
        return sorted((f for f in found if f.share >= _LEAST_SHARE), key=lambda f: -f.share)

    def _waiting(self) -> Iterator[ScriptFinding]:
        for wait in self.waits.lines():
            if wait.count >= _OFTEN:
                yield ScriptFinding(
                    wait.seconds / self.wall,
                    f"{wait.line} waits for the device {wait.count} times; keep the arrays, and look at them after the "
                    "loop or every 50 steps, so that the next step begins meanwhile",
                )

    def _compiling(self) -> Iterator[ScriptFinding]:
        for function, entries in self.compiled.by_function().items():
            again = [e for e in entries if e.compiled and not e.is_own and e.cause.kind != "first call"]
            if len(again) > 1:
                yield ScriptFinding(sum(e.total for e in again) / self.wall, _again(function, again))

    def _eager(self) -> Iterator[ScriptFinding]:
        """A share of the host's own time, as no clock tells how long it took to begin the operations."""
        row = next((row for row in self.kernels.rows if row.name == EAGER), None)
        if row is not None and row.calls >= _MANY:
            yield ScriptFinding(
                self._of_host() / self.wall,
                f"{row.calls} operations ran one by one outside of jit ({row.detail}); put the lines that repeat them "
                "into a jitted function",
            )

    def _of_host(self) -> float:
        """The seconds in which the host did not compile and did not wait."""
        return max(self.wall - sum(self.compiled.seconds.values()) - self.waits.seconds, 0.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as a page (`.html`) or as its content (`.json`); ValueError for another ending."""
        self._session._report("save").save(path, self)

    def notes(self) -> list[str]:
        """What the report lacks."""
        why = f"Kernels were recorded for {self.seconds:g} s" if self.is_late else "The script took a trace of its own"
        return [] if self.is_whole else [f"{why}, and those from then on are not listed."]

    def __str__(self) -> str:
        tables = [self._compilations(), self._waits(), str(self.kernels)]
        parts = [self._shares(), self._findings(), *tables, *self._devices, *self.notes()]
        return printable("\n\n".join(filter(None, parts)))

    def _shares(self) -> str:
        """The wall time by what the host did. It waits while kernels run, or does something else meanwhile."""
        seconds = self.compiled.seconds
        known = {"compiling": sum(seconds.values()), "waiting for the device": self.waits.seconds}
        known["Python and calls, in which a CPU computes too"] = self._of_host()
        known["the device computed"] = self.kernels.covered
        rows = [f"{shown(s, 'seconds'):>10} {s / self.wall:>5.0%}  {name}" for name, s in known.items()]
        return "\n".join([f"{shown(self.wall, 'seconds')} of wall time", *rows])

    def _findings(self) -> str:
        found = self.findings()
        return "\n".join(["Findings", *map(str, found)]) if found else "Nothing stands out."

    def _compilations(self) -> str:
        functions = sorted(self.compiled.by_function().items(), key=lambda f: -sum(e.total for e in f[1]))
        rows = [_compiled_row(function, entries) for function, entries in functions[:_ROWS]]
        return "\n".join(["Compiled", *rows, *_more(functions)]) if rows else ""

    def _waits(self) -> str:
        rows = [_wait_row(wait) for wait in self.waits.lines()[:_ROWS]]
        return "\n".join(["Waited for the device", *rows, *_more(self.waits.lines())]) if rows else ""


def _again(function: Function, entries: list[Compilation]) -> str:
    last = entries[-1]
    edit = "give jit buckets, or pad it to a few shapes" if last.cause.kind == "shape" else last.cause.edit
    return f"{function} was compiled {len(entries) + 1} times: {last.cause.text}; to avoid it, {edit}"


def _more(rows: Sequence[Any]) -> list[str]:
    return [f"… and {len(rows) - _ROWS} more"] if len(rows) > _ROWS else []


def _compiled_row(function: Function, entries: Compilations) -> str:
    count = sum(entry.compiled for entry in entries)
    return f"{shown(sum(e.total for e in entries), 'seconds'):>10} {count:>5}  {function}"


def _wait_row(wait: LineWait) -> str:
    return f"{shown(wait.seconds, 'seconds'):>10} {wait.count:>5}  {wait.line}"
