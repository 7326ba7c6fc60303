"""Devices without work between two programs, as the host is late with the next one, and what it did meanwhile."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from xlamini.inspection.timing.causes.finding import TimeFinding
from xlamini.inspection.timing.trace.host import CALL, TO_DEVICE
from xlamini.inspection.timing.trace.trace import Trace
from xlamini.inspection.units import shown

_MUCH = 0.3
"""Recording holds the host up, most of all as it notes each call in Python, so that less may be its doing."""
_OFTEN = 10
"""Fewer programs do not tell what a loop does."""
_CHANCE = 10
"""The longest gap of so many is left out: something was compiled, or another program had the CPU."""
_HALF = 0.5

Gap = tuple[float, float]
"""When one program had ended, and the next one began, in seconds."""


def idle_between_programs(trace: Trace) -> Iterator[TimeFinding]:
    """No program runs for a large part of a trace of many programs."""
    busy = trace.running
    gaps = sorted(zip(busy.ends, busy.starts[1:], strict=False), key=lambda gap: gap[1] - gap[0])
    usual = sorted(gaps[: -max(len(gaps) // _CHANCE, 1)])
    seconds = sum(end - start for start, end in usual)
    if len(busy.starts) >= _OFTEN and seconds >= _MUCH * trace.span:
        yield TimeFinding(seconds, (
            f"no program runs in {shown(seconds, 'seconds')} of {shown(trace.span, 'seconds')}, in gaps between "
            f"{len(busy.starts)} programs; {_reason(trace, usual, seconds)}"
        ))  # fmt: skip


def _reason(trace: Trace, gaps: Sequence[Gap], seconds: float) -> str:
    """What the host did for most of the gaps, and the edit."""
    kinds = _meanwhile(trace, gaps)
    if kinds.get(TO_DEVICE, 0.0) > _HALF * seconds:
        return "meanwhile the host moves arrays to the device: put the next batch there before you wait for this one"
    if kinds.get(CALL, 0.0) > _HALF * seconds:
        return (
            "meanwhile the host calls functions, which takes longer than their programs: let each do more, as by one "
            "jitted function around them, or jax.lax.scan over several steps"
        )
    beside = "meanwhile the host runs other Python: " if kinds else ""
    return (
        f"{beside}prepare the next batch in a thread, and look at results after the next step is called; "
        "python -m xlamini profile names the lines"
    )


def _meanwhile(trace: Trace, gaps: Sequence[Gap]) -> dict[str, float]:
    """The seconds of the gaps by what the host did; nothing of several hosts, of which a trace has the first one's."""
    found, starts = dict[str, float](), [start for start, _ in gaps]
    for it in trace.host if len(trace.recordings) == 1 else ():
        begin, end = it.start * 1e-9, it.end * 1e-9
        for start, until in gaps[max(bisect_right(starts, begin) - 1, 0) : bisect_right(starts, end)]:
            found[it.kind] = found.get(it.kind, 0.0) + max(min(end, until) - max(begin, start), 0.0)
    return found
