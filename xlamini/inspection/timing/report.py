"""Where the time of a recording went: its tables, what they find, and its page."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from xlamini.inspection.page import checked_path, page, save
from xlamini.inspection.timing.causes.findings import CAUSES, TimeFindings, of_trace, worthwhile
from xlamini.inspection.timing.causes.idle import idle_between_programs
from xlamini.inspection.timing.page.content import time_content
from xlamini.inspection.timing.page.inspections import write_inspections
from xlamini.inspection.timing.skew import Skew
from xlamini.inspection.timing.table import TimeTable, time_table
from xlamini.inspection.timing.trace.files import Recording, read_recordings, recording
from xlamini.inspection.timing.trace.trace import Trace

if TYPE_CHECKING:
    from xlamini.inspection.timing.script.profile import ScriptProfile


class TimeReport:
    """What is said of a `Trace`, for `ProfileSession` and the command `profile`."""

    trace: Trace

    def __init__(self, recordings: Sequence[Recording], programs: Iterable[Any] = ()):
        self.trace = Trace(recordings, programs)

    def table(self, by: str = "line") -> TimeTable:
        """The time of the kernels, added up by line, kernel, equation or program; or that of each device."""
        return time_table(self.trace, by)

    def findings(self) -> TimeFindings:
        """What takes time and can be avoided, with shares of the time between the first kernel and the last."""
        return self._found

    @cached_property
    def _found(self) -> TimeFindings:
        return worthwhile(of_trace(self.trace, self.trace.span, [*CAUSES, idle_between_programs]))

    def skew(self) -> Skew:
        """Who waited for whom at the collectives, and how long."""
        return Skew(self.trace)

    def __str__(self) -> str:
        found = self.findings()
        said = f"Findings\n{found}" if found else ""
        return "\n\n".join(filter(None, (said, str(self.table()), self.devices())))

    __repr__ = __str__

    def devices(self) -> str:
        """A text of several devices: how busy each was, and who waited for whom."""
        return f"{self.table('device')}\n\n{self.skew()}" if len(self.trace.devices) > 1 else ""

    def save(
        self,
        path: str | os.PathLike[str],
        script: ScriptProfile | None = None,
        say: Callable[[str], object] = lambda text: None,
    ) -> None:
        """Write the page (`.html`) or its content (`.json`); ValueError for another ending.

        `script` is the profile of the script that was recorded, whose shares, compilations and waits are shown too.
        Beside a page are those of `inspect` for the programs that took longest; `say` is told before each is made.
        """
        is_page = checked_path(path).endswith(".html")
        inspections = write_inspections(self.trace, os.fspath(path), say) if is_page else {}
        content = time_content(self, script, os.path.basename(sys.argv[0] or "python"), inspections)
        save(path, content, lambda: page(content, template="profile"))


def time_report(recorded: bytes, programs: Iterable[Any]) -> TimeReport:
    """What is said of a recording of this process, which had these executables meanwhile."""
    return TimeReport([recording(recorded)], programs)


def read_trace(where: str | os.PathLike[str]) -> TimeReport:
    """What is said of a trace in files; see `profiler.read_trace`."""
    return TimeReport(read_recordings(where))
