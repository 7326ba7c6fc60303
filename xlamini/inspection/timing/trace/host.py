"""What the host did meanwhile, as the recording has it: calls of functions, arrays handed over, waits."""
from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

CALL, TO_DEVICE, WAIT = "call of", "array to the device", "wait"
_NAMES = {"PjitFunction(": CALL, "DevicePut": TO_DEVICE, "CommonPjRtBuffer::Await": WAIT}
"""Beginnings of the runtime's names for what it does, and words for them."""


class HostActivity(NamedTuple):
    """Something that the host did, for the call of a jitted function its name; times are in nanoseconds."""

    kind: str
    function: str
    start: float
    end: float
    lane: str = "host"
    """What it is drawn with on a timeline."""
    line: str = ""
    """`file:line` of the user's, where it is known."""
    bytes: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind} {self.function}".strip()


def place(line: str) -> str:
    """`file:line` of `file:line (function)`."""
    return line.partition(" (")[0]


def kind_of_activity(name: str) -> tuple[str, str] | None:
    """The kind and the function of an activity, whose event has this name; None for another event."""
    for beginning, word in _NAMES.items():
        if name.startswith(beginning):
            return word, name[len(beginning) :].removesuffix(")") if beginning.endswith("(") else ""
    return None


def outermost(activities: Iterable[HostActivity]) -> list[HostActivity]:
    """The activities that are in no other, in the order in which they began."""
    outer: list[HostActivity] = []
    for it in sorted(activities, key=lambda it: (it.start, -it.end)):
        if not outer or it.start >= outer[-1].end:
            outer.append(it)
    return outer
