"""The summary: the program's way from Python to kernels, what it costs on each target, and what is worth a look."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xlamini.inspection.equations import place_in, place_of
from xlamini.inspection.quantities import value_of
from xlamini.inspection.text.view import View, unavailable
from xlamini.inspection.units import UNKNOWN, shown

ABOUT = "Summary: the way of the program from Python to kernels, its cost on each target, and what is worth a look."
MOST_FINDINGS = 7


def lines(view: View) -> Iterator[str]:
    made = view.report["made_with"]
    yield ""
    yield from view.say(f"{view.report['name']}, with xlamini {made['xlamini']}, jaxlib {made['jaxlib']}")
    yield ""
    yield from _way(view)
    yield from _totals(view)
    yield ""
    yield from _targets(view)
    yield ""
    yield from _findings(view)


def _way(view: View) -> list[str]:
    steps = view.report["program"]
    count = [UNKNOWN if s["count"] is None else str(s["count"]) for s in steps]
    rows = [[s["title"], n, shown(s["seconds"], "seconds")] for s, n in zip(steps, count, strict=True)]
    return view.table(("step", "count", "took"), rows, right=(1, 2))


def _totals(view: View) -> Iterator[str]:
    totals = view.report["totals"]
    if totals is None:
        return
    flops = {name: cost["flops"] for name, cost in totals["by_direction"].items() if cost["flops"]}
    parts = [f"{name} {shown(number, 'count')}" for name, number in flops.items()]
    yield ""
    yield from view.say(
        f"The equations, as if nothing were fused: {shown(totals['flops'], 'count')} FLOPs ({', '.join(parts)}), "
        f"{shown(totals['bytes'], 'bytes')}, {totals['intensity']:.3g} FLOPs per byte."
    )
    for sentence in totals["left_out"]:
        yield from view.say(f"Left out: {sentence}", "  ")


def _targets(view: View) -> Iterator[str]:
    gone = {t["name"]: view.missing(t) for t in view.targets}
    rows = [_target_row(view, t) for t in view.targets if gone[t["name"]] is None]
    if rows:
        head = ("target", "FLOPs", "bytes", "peak", "of", "kernels", "collectives", "time")
        yield from view.table(head, rows, right=range(1, 8))
    for target in view.targets:
        reason = gone[target["name"]]
        if reason is not None:
            yield from view.say(unavailable(target, reason))
        elif target["prediction"]:
            yield from view.say(f"time of {target['name']}: {target['prediction']['source']}", "  ")


def _target_row(view: View, target: Any) -> list[str]:
    def amount(name: str, family: str) -> str:
        return shown(value_of(view.report, target, name), family)

    capacity = (target["memory"] or {}).get("capacity")
    sizes = [amount("flops", "count"), amount("bytes", "bytes"), amount("peak", "bytes"), shown(capacity, "bytes")]
    counts = [amount("kernels", "count"), amount("collectives", "count"), amount("seconds", "seconds")]
    return [target["name"], *sizes, *counts]


def _findings(view: View) -> Iterator[str]:
    found = view.report["findings"][:MOST_FINDINGS]
    if not found:
        yield "No findings."
    for finding in found:
        place = place_in(view.report, finding["source"], finding["line"])
        where = place if place.file else place_of(view.report, finding["row"])
        mark = "!" if finding["severity"] == "warning" else "-"
        at = f" ({where})" if where.file else ""
        edit = f": {finding['edit']}" if finding["edit"] else ""
        yield from view.say(f"{mark} {finding['text']}{at}{edit} [{finding['screen']}]")
