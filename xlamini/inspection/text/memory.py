"""Memory over program order: what is alive, who made it and who still needs it."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from xlamini.inspection.equations import place_of
from xlamini.inspection.layout import curve
from xlamini.inspection.quantities import Target, alive_at_peak
from xlamini.inspection.text.view import View
from xlamini.inspection.units import shown

_HEIGHT = 8


def lines(view: View) -> Iterator[str]:
    yield ""
    yield from _plan(view)
    yield from view.by_target(_target, "memory")


def _plan(view: View) -> Iterator[str]:
    memory = view.report["memory"]
    if memory is None:
        yield "not available: the report has no plan of xlamini's"
        return
    sizes = ", ".join(f"{name} {shown(memory[name], 'bytes')}" for name in ("arguments", "results", "temporaries"))
    at = "the arguments" if memory["at"] is None else place_of(view.report, memory["at"])
    yield from view.say(f"xlamini's plan: peak {shown(memory['peak'], 'bytes')} at {at} ({sizes})")
    yield from plot([m["bytes"] for m in memory["moments"]], None, view.width)
    yield from view.table("values", alive_at_peak(memory["moments"], memory["values"], "until"))
    yield from view.table("groups", memory["groups"])
    for sentence in memory["left_out"]:
        yield from view.say(f"Left out: {sentence}")


def _target(view: View, target: Target) -> Iterator[str]:
    memory = target["memory"]
    names = ("peak", "arguments", "outputs", "temporaries", "code", "capacity")
    yield from view.say(", ".join(f"{name} {shown(memory[name], 'bytes')}" for name in names))
    if not target["moments"]:
        yield from view.say((target["unavailable"] or {}).get("moments") or "Its compiler does not report its buffers.")
        return
    yield from plot([m["bytes"] for m in target["moments"]], memory["capacity"], view.width)
    yield from view.table("buffers", alive_at_peak(target["moments"], target["buffers"], "last"))


def plot(sizes: Sequence[float], capacity: float | None, width: int) -> Iterator[str]:
    """A curve of bytes; the capacity is a line at the top where it is within twice the peak."""
    if not sizes:
        return
    top = max(sizes)
    near = capacity is not None and capacity <= 2 * top
    top = max(top, capacity) if near and capacity is not None else top
    drawn = curve(sizes, top, min(width, 100) - 14, _HEIGHT)
    for i, line in enumerate(drawn):
        label = shown(top, "bytes") if i == 0 else ""
        ceiling = line.ljust(min(width, 100) - 14, "‾") if near and i == 0 else line
        yield f"{label:>12} |{ceiling}"
    yield f"{'0':>12} +{'-' * max(map(len, drawn))}" + ("  ‾ is the capacity" if near else "")
