"""What the host did meanwhile, as the recording has it: calls of functions, arrays handed over, waits."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from xlamini.inspection.timing.trace.events import reading

_NAMES = {"PjitFunction(": "call of", "DevicePut": "array to the device", "CommonPjRtBuffer::Await": "wait"}
"""Beginnings of the runtime's names for what it does, and words for them."""
_BEGINNINGS = tuple(_NAMES)
_THREADS_OF_XLA = "tf_"


class HostActivity(NamedTuple):
    """Something that the host did, for the call of a jitted function its name; times are in nanoseconds."""

    kind: str
    function: str
    start: float
    end: float

    @property
    def name(self) -> str:
        return f"{self.kind} {self.function}".strip()


def host_activities(data: Any) -> list[HostActivity]:
    """The host's activities that are in no other, in the order in which they began."""
    with reading():
        found = sorted(_activities(data), key=lambda it: (it.start, -it.end))
    outer: list[HostActivity] = []
    for it in found:
        if not outer or it.start >= outer[-1].end:
            outer.append(it)
    return outer


def _activities(data: Any) -> Iterator[HostActivity]:
    for plane in data.planes:
        if not plane.name.startswith("/host:CPU"):
            continue
        for line in plane.lines:
            if not line.name.startswith(_THREADS_OF_XLA):
                yield from _known(line)


def _known(line: Any) -> Iterator[HostActivity]:
    for event in line.events:
        name = event.name
        if name.startswith(_BEGINNINGS):  # few do, of hundreds of thousands
            begins = next(word for word in _BEGINNINGS if name.startswith(word))
            function = name[len(begins) :].removesuffix(")") if begins.endswith("(") else ""
            yield HostActivity(_NAMES[begins], function, event.start_ns, event.end_ns)
