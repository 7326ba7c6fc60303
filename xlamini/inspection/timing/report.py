"""Where the time of a recording went: its tables, what they find, and its page."""
from __future__ import annotations

from typing import Any

from xlamini.inspection.timing.skew import Skew
from xlamini.inspection.timing.table import TimeTable, time_table
from xlamini.inspection.timing.trace import Trace


class TimeReport:
    """What is said of a `Trace`, for `ProfileSession` and the command `profile`."""

    def __init__(self, data: Any, programs: Any = ()):
        self.trace = Trace(data, programs)

    def table(self, by: str = "line") -> TimeTable:
        """The time of the kernels, added up by line, kernel, equation or program; or that of each device."""
        return time_table(self.trace, by)

    def skew(self) -> Skew:
        """Who waited for whom at the collectives, and how long."""
        return Skew(self.trace)

    def __str__(self) -> str:
        return "\n\n".join(filter(None, (str(self.table()), self.devices())))

    __repr__ = __str__

    def devices(self) -> str:
        """A text of several devices: how busy each was, and who waited for whom."""
        return f"{self.table('device')}\n\n{self.skew()}" if len(self.trace.devices) > 1 else ""
