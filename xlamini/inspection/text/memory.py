"""Memory over program order: what is alive, who made it and who still needs it."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from xlamini.inspection.equations import place_of
from xlamini.inspection.layout import curve
from xlamini.inspection.quantities import Target
from xlamini.inspection.text.view import View
from xlamini.inspection.units import UNKNOWN, shown

ABOUT = (
    "Memory: live bytes in program order, first as xlamini plans them from the equations, before compiling; then as "
    "the compiler of each target lays out its buffers. The tables show what is alive at the peak."
)
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
    peak = f"{shown(memory['peak'], 'bytes')} at {_line(view, memory['at'])}"
    yield from view.say(f"xlamini's plan: peak {peak} ({sizes})")
    yield from plot([m["bytes"] for m in memory["moments"]], None, view.width)
    yield from _alive(view)
    for group in memory["groups"][: view.limit]:
        saves, adds = shown(group["saves"], "bytes"), shown(group["adds"], "count")
        yield from view.say(f"recomputing {group['scope']} saves {saves} and adds {adds} FLOPs")
    for sentence in memory["left_out"]:
        yield from view.say(f"Left out: {sentence}")


def _line(view: View, row: int | None) -> str:
    return "the arguments" if row is None else str(place_of(view.report, row))


def peak_of(sizes: Sequence[float]) -> int:
    """The first moment at which most is alive."""
    return max(range(len(sizes)), key=lambda i: sizes[i], default=0)


def _alive(view: View) -> Iterator[str]:
    """The values alive at the peak, the largest first."""
    memory = view.report["memory"]
    peak = peak_of([m["bytes"] for m in memory["moments"]])
    rows = []
    for value in sorted(memory["values"], key=lambda v: -v["bytes"]):
        if value["first"] <= peak <= value["until"]:
            needed = UNKNOWN if value["last"] is None else str(place_of(view.report, value["last"]))
            why = "kept for the backward pass" if value["kept_for_backward"] else ""
            name = value["variable"] or ""
            rows.append([shown(value["bytes"], "bytes"), value["type"], name, _line(view, value["made"]), needed, why])
    yield from view.table(("alive", "type", "name", "made by", "needed by", ""), rows, right=(0,))


def _target(view: View, target: Target) -> Iterator[str]:
    memory = target["memory"]
    names = ("peak", "arguments", "outputs", "temporaries", "code", "capacity")
    yield from view.say(", ".join(f"{name} {shown(memory[name], 'bytes')}" for name in names))
    if not target["moments"]:
        yield from view.say((target["unavailable"] or {}).get("moments") or "Its compiler does not report its buffers.")
        return
    sizes = [m["bytes"] for m in target["moments"]]
    yield from plot(sizes, memory["capacity"], view.width)
    peak = peak_of(sizes)
    alive = [b for b in target["buffers"] if b["first"] <= peak <= b["last"]]
    rows = [
        [shown(b["bytes"], "bytes"), b["name"], "no equation" if b["row"] is None else _line(view, b["row"])]
        for b in sorted(alive, key=lambda b: -b["bytes"])
    ]
    yield from view.table(("alive", "buffer", "made by"), rows, right=(0,))


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
