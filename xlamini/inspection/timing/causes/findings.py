"""What takes time and can be avoided, in words, with the share of the time, the line, and the edit that mends it.

A cause is a function from what was recorded to findings. Those in `CAUSES` need the trace and its programs alone; those
of a script need what was noted of its host too (script/causes.py). What takes less than a twentieth of the time is not
worth a reader's.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from xlamini.inspection.timing.causes import devices, loops, products, programs
from xlamini.inspection.timing.causes.finding import LEAST_SHARE, TimeFinding
from xlamini.inspection.timing.trace.trace import Trace

Cause = Callable[[Trace], Iterator[TimeFinding]]

CAUSES: list[Cause] = [
    programs.callbacks,
    programs.gathers_of_neighbours,
    programs.undonated_arguments,
    programs.wider_floats,
    loops.kept_by_loops,
    products.transposed_products,
    programs.inserted_copies,
    devices.slow_device,
    devices.idle_devices,
    devices.copied_work,
]
"""What traces show, each found by one function; a share is one of the time of the trace."""


class TimeFindings(list[TimeFinding]):
    """Findings, the largest share first; prints one a line."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "Nothing stands out."


def worthwhile(found: Iterable[TimeFinding]) -> TimeFindings:
    """The findings with a share that is worth an edit, the largest first."""
    return TimeFindings(sorted((f for f in found if f.share >= LEAST_SHARE), key=lambda f: -f.share))


def of_trace(trace: Trace, seconds: float, causes: Iterable[Cause] = CAUSES) -> Iterator[TimeFinding]:
    """What the causes find in a trace, as shares of these seconds."""
    for cause in causes:
        for each in cause(trace):
            yield each._replace(share=min(each.share / seconds, 1.0) if seconds else 0.0)
