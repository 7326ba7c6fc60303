"""The summary: the program's way from Python to kernels, what it costs on each target, and what is worth a look."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.inspection.equations import place_in, place_of
from xlamini.inspection.quantities import side_by_side
from xlamini.inspection.text.view import View
from xlamini.inspection.units import shown

MOST_FINDINGS = 7


def lines(view: View) -> Iterator[str]:
    made = view.report["made_with"]
    yield ""
    yield from view.say(f"{view.report['name']}, with xlamini {made['xlamini']}, jaxlib {made['jaxlib']}")
    yield ""
    yield from view.table("steps", view.report["program"])
    yield from _totals(view)
    yield ""
    yield from _targets(view)
    yield ""
    yield from _findings(view)


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
    here = [side_by_side(view.report, target) for target in view.targets if view.missing(target) is None]
    yield from view.table("targets", here)
    for target in view.targets:
        source = (target["prediction"] or {}).get("source")
        words = view.say(f"time of {target['name']}: {source}", "  ") if source else []
        if target.get("measured"):
            words = [*words, *view.say(f"measured for {target['name']}: {target['measured']['source']}", "  ")]
        yield from view.part(target, words)


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
