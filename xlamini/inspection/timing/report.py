"""Where the time of a recording went: its tables, what they find, and its page."""
from __future__ import annotations

from typing import Any

from xlamini.inspection.timing.findings import TimeFindings, of_trace, worthwhile
from xlamini.inspection.timing.table import TimeTable, time_table
from xlamini.inspection.timing.trace import Trace


class TimeReport:
    """What is said of a `Trace`, for `ProfileSession` and the command `profile`."""

    def __init__(self, data: Any, programs: Any = ()):
        self.trace = Trace(data, programs)

    def table(self, by: str = "line") -> TimeTable:
        """The time of the kernels, added up by line, kernel, equation or program."""
        return time_table(self.trace, by)

    def findings(self) -> TimeFindings:
        """What takes time and can be avoided, with shares of the time between the first kernel and the last."""
        return worthwhile(of_trace(self.trace, self.trace.span))
