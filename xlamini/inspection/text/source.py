"""The user's lines, each with what it costs."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from xlamini.inspection.line_costs import LineCost, line_costs
from xlamini.inspection.quantities import Target
from xlamini.inspection.text.view import View
from xlamini.inspection.wall_time import wall_time

_AROUND = 1
"""So many lines before and after one that costs something are shown."""


def lines(view: View) -> Iterator[str]:
    target = next((t for t in view.targets if t["kernels"]), None)
    by_file = defaultdict[str, list[LineCost]](list)
    for cost in line_costs(view.report, target, lambda place: (place.file, place.line)).values():
        by_file[cost.place.file].append(cost)
    timed = any(c.seconds is not None for costs in by_file.values() for c in costs)
    if target is not None and timed:
        yield ""
        yield from view.say(f"Times are those of {target['name']}.")
    for source in view.report["sources"]:
        costs = by_file.pop(source["file"], [])
        if costs and not source["library"]:
            yield from _file(view, source["file"], source["lines"], costs)
    hidden = [c for costs in by_file.values() for c in costs]
    if hidden:
        yield ""
        yield from view.say(f"{sum(c.equations for c in hidden)} equations have no line of yours.")
    if target is not None and target.get("measured"):
        yield from _measured(view, target)


def _measured(view: View, target: Target) -> Iterator[str]:
    """What no line has of the measured time, and all parts of a call."""
    yield ""
    yield from view.table("inserted", [k for k in target["kernels"] if k["inserted"] and k.get("measured")], target)
    yield ""
    yield from view.table("parts", wall_time(view.report, target))
    yield from view.measured(target)


def _file(view: View, file: str, text: Sequence[str] | None, costs: Sequence[LineCost]) -> Iterator[str]:
    most = sorted(costs, key=lambda c: (c.measured or 0, c.seconds or 0, c.flops + c.bytes), reverse=True)[: view.limit]
    at = {cost.place.line: cost for cost in most}
    yield ""
    yield file if text else f"{file} (without its text)"
    items, last = [], 0
    for number in _shown_lines(at, len(text) if text else None):
        if number > last + 1 and last and text:
            items.append({"line": "…"})
        code = text[number - 1] if text and number <= len(text) else ""
        cost = at[number]._asdict() if number in at else {}
        items.append({**cost, "line": number, "text": code or (cost["place"].function if cost else "")})
        last = number
    yield from view._replace(limit=len(items)).table("lines", items)
    if len(costs) > len(most):
        yield f"… and {len(costs) - len(most)} lines that cost less; limit={len(costs)} shows all"


def _shown_lines(costly: dict[int, LineCost], count: int | None) -> list[int]:
    """The numbers of the lines to show: those that cost something, and if there is text, those around them."""
    if count is None:
        return sorted(costly)
    near = {n + d for n in costly for d in range(-_AROUND, _AROUND + 1)}
    return sorted(n for n in near if 1 <= n <= count or n in costly)
