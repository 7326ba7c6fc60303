"""The kernels of a program, and the values that pass through memory between them."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xlamini.inspection.equations import place_of
from xlamini.inspection.quantities import Target
from xlamini.inspection.text.view import View, unavailable
from xlamini.inspection.units import UNKNOWN, shown

ABOUT = (
    "Kernels: what the device runs, with the equations inside each kernel by line, and below the values that pass "
    "through memory between kernels, with the compiler's reason for not fusing."
)


def lines(view: View) -> Iterator[str]:
    yield from view.by_target(_kernels, "kernels")


def _kernels(view: View, target: Target) -> Iterator[str]:
    kernels = sorted(target["kernels"], key=lambda k: (-(k["seconds"] or 0), -k["bytes"], -k["flops"]))
    sources = {k["time"] for k in kernels if k["time"]}
    if len(sources) == 1:
        yield f"times: {min(sources)}"
    head = ("kernel", "kind", "time", "", "FLOPs", "bytes", "of roof", "runs", "from")
    yield from view.table(head, [_row(view, target, k, len(sources) > 1) for k in kernels], right=(2, 4, 5, 6, 7))
    coverage = target["coverage"]
    if coverage:
        put_in = f"; put in by XLA: {', '.join(coverage['inserted'][: view.limit])}" if coverage["inserted"] else ""
        text = f"{coverage['with_id']} of {coverage['instructions']} instructions come from an equation{put_in}"
        yield from view.say(text)
    yield ""
    yield from _boundaries(view, target)


def _row(view: View, target: Target, kernel: Any, mixed: bool) -> list[str]:
    places = dict.fromkeys(str(place_of(view.report, row)) for row in kernel["rows"])
    source = ", ".join(places) or "put in by XLA"
    flops, moved = shown(kernel["flops"], "count"), shown(kernel["bytes"], "bytes")
    time = [shown(kernel["seconds"], "seconds"), (kernel["time"] or "") if mixed else ""]
    runs = str(kernel["runs"]) if kernel["runs"] != 1 else ""
    return [kernel["name"], kernel["kind"], *time, flops, moved, _share(target, kernel), runs, source]


def _share(target: Target, kernel: Any) -> str:
    """The share of the roof that a kernel reaches; a lower bound is computed from the roof, so it reaches all of it."""
    roof = target["roof"]
    if roof is None or not kernel["seconds"] or kernel["time"] == "lower bound":
        return UNKNOWN
    least = max(kernel["flops"] / roof["flops"], kernel["bytes"] / roof["bandwidth"])
    return f"{100 * least / kernel['seconds']:.0f} %"


def _boundaries(view: View, target: Target) -> Iterator[str]:
    reason = view.missing(target, "boundaries")
    if reason is not None:
        yield from view.say(unavailable(target, reason))
        return
    names = [k["name"] for k in target["kernels"]]
    rows = []
    for b in sorted(target["boundaries"], key=lambda b: -b["bytes"]):
        source = UNKNOWN if b["producer"] is None else names[b["producer"]]
        way = f"{source} -> {', '.join(names[i] for i in b['consumers'])}"
        rows.append([b["value"], shown(b["bytes"], "bytes"), way, shown(b["gain"], "seconds"), b["reason"] or ""])
    if not rows:
        yield "No value passes through memory between kernels."
        return
    yield from view.table(("between kernels", "bytes", "way", "gain", "why it is not fused"), rows, right=(1, 3))
