"""The skew of collectives: a device that comes late lets the others of its group wait."""
from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from xlamini.core.console import printable
from xlamini.inspection.layout import plain, table
from xlamini.inspection.timing.arrivals import Arrival, Kernel, arrivals
from xlamini.inspection.timing.trace.trace import Trace
from xlamini.inspection.units import shown

_ROWS, _WIDTH = 10, 120


class CollectiveSkew(NamedTuple):
    """A collective: how often it ran, and how long after the first device the last one arrived, in all runs."""

    name: str
    place: str
    runs: int
    seconds: float
    last: str
    """The device that was the last most often."""


class DeviceWait(NamedTuple):
    """How long a device waited for others, how long others waited for it, and how often it was the last."""

    device: str
    waited: float
    held_up: float
    last: int


class Skew:
    """Who waited for whom at the collectives of a trace; `str` is a text of it.

    `pairs` has the seconds that the first device of a pair waited for the second one. `rows` are the collectives, and
    `devices` what each device waited, both the longest first.
    """

    rows: list[CollectiveSkew]
    devices: list[DeviceWait]
    pairs: dict[tuple[str, str], float]

    def __init__(self, trace: Trace):
        self.pairs, self._lasts = {}, Counter[str]()
        self.rows = [self._row(trace, key, rounds) for key, rounds in arrivals(trace).items()]
        self.rows.sort(key=lambda row: -row.seconds)
        self.devices = [self._waits(device) for device in trace.devices if self.rows]
        self.devices.sort(key=lambda wait: -wait.waited)

    def _row(self, trace: Trace, key: Kernel, rounds: list[list[Arrival]]) -> CollectiveSkew:
        lasts, seconds = Counter[str](), 0.0
        for together in rounds:
            last = max(together, key=lambda arrival: arrival.start)
            lasts[last.device] += 1
            seconds += (last.start - min(arrival.start for arrival in together)) * 1e-9
            for each in together:
                self._add(each, last)
        self._lasts.update(lasts)
        program = trace.program(*key)
        place = program.place(key[1]) if program else ""
        return CollectiveSkew(f"{key[1]} of {key[0]}", place, len(rounds), seconds, lasts.most_common(1)[0][0])

    def _add(self, each: Arrival, last: Arrival) -> None:
        """Count what a device waited: until the last one came, if it waited at all."""
        if each is not last:
            pair = each.device, last.device
            waited = max(min(last.start, each.end) - each.begin, 0.0) * 1e-9
            self.pairs[pair] = self.pairs.get(pair, 0.0) + waited

    def _waits(self, device: str) -> DeviceWait:
        waited = sum(seconds for (waiter, _), seconds in self.pairs.items() if waiter == device)
        held_up = sum(seconds for (_, late), seconds in self.pairs.items() if late == device)
        return DeviceWait(device, waited, held_up, self._lasts[device])

    def __str__(self) -> str:
        if not self.rows:
            return "The trace has no collective of several devices."
        rows = [[shown(row.seconds, "seconds"), str(row.runs), _described(row)] for row in self.rows]
        waits = [
            [shown(w.waited, "seconds"), shown(w.held_up, "seconds"), str(w.last), w.device] for w in self.devices
        ]
        skews = table(["skew", "runs", "collective"], rows, _ROWS, range(2), _WIDTH)
        waited = table(["waited", "held up", "last", "device"], waits, _ROWS, range(3), _WIDTH)
        return printable("\n".join([*skews, plain(self._summary()), "", *waited]))

    __repr__ = __str__

    def _summary(self) -> str:
        slow = max(self.devices, key=lambda wait: wait.held_up)
        first = self.devices[0]
        return (
            f"The others waited {shown(slow.held_up, 'seconds')} for {slow.device}, the last in {slow.last} runs; "
            f"{first.device} waited longest, {shown(first.waited, 'seconds')}."
        )


def _described(row: CollectiveSkew) -> str:
    return f"{row.name}  {row.place}; most often last: {row.last}"
