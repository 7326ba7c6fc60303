"""What the host did meanwhile, as the recording has it: calls of functions, arrays handed over, waits."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

_NAMES = {"PjitFunction(": "call of ", "DevicePut": "array to the device", "CommonPjRtBuffer::Await": "wait"}
"""Beginnings of the runtime's names for what it does, and words for them."""
_THREADS_OF_XLA = "tf_"


class HostActivity(NamedTuple):
    """Something that the host did; times are in nanoseconds, on the clock of the kernels."""

    name: str
    start: float
    end: float


def host_activities(data: Any) -> list[HostActivity]:
    """The host's activities that are in no other, in the order in which they began."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # see `kernel_runs`
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
        begins = next((word for word in _NAMES if name.startswith(word)), None)
        if begins is not None:
            function = name[len(begins) :].removesuffix(")") if begins.endswith("(") else ""
            yield HostActivity(_NAMES[begins] + function, event.start_ns, event.end_ns)
