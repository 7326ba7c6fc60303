"""What has changed from an earlier report: costs first, then lines, kernels and equations."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xlamini.inspection.diff import diff, pairs_of, same_roof
from xlamini.inspection.equations import Report, base_name, place_of
from xlamini.inspection.quantities import QUANTITIES, Target, find_target
from xlamini.inspection.text.view import View
from xlamini.inspection.units import change, shown

ABOUT = (
    "Diff: what has changed from an earlier report, costs first, then the lines that moved most, then kernels and "
    "equations that are new, lost or changed. An equation without a partner counts as new or lost."
)


def lines(view: View) -> Iterator[str]:
    yield ""
    if view.against is None:
        yield from view.say("not available: there is no earlier report; give against= (--diff)")
        return
    found = diff(view.against, view.report)
    names = {t["name"] for t in view.targets}
    yield from _costs(view, [c for c in found["costs"] if c["target"] is None or c["target"] in names])
    for before, after in pairs_of(view.against, view.report):
        if after["name"] in names and not same_roof(before, after):
            yield from view.say(f"The times of {after['name']} are not compared: the reports have other roofs for it.")
    for state, targets in found["targets"].items():
        yield from view.say(f"{state} targets: {', '.join(targets)}") if targets else ()
    yield ""
    yield from _lines(view, found["lines"])
    for kernels in found["kernels"]:
        if kernels["target"] in names:
            yield ""
            yield from _kernels(view, view.against, kernels)
    yield ""
    yield from _equations(view, view.against, found["equations"])


def _costs(view: View, costs: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = []
    for cost in costs:
        b, a = cost["before"], cost["after"]
        family = QUANTITIES[cost["quantity"]].family
        if b is not None or a is not None:
            row = [cost["quantity"], cost["target"] or "all", shown(b, family), shown(a, family), change(b, a)]
            rows.append(row)
    return view.table(("cost", "target", "before", "after", "change"), rows, right=(2, 3, 4))


def _lines(view: View, moved: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not moved:
        yield "No line of yours costs more or less than before."
        return
    rows = []
    for line in moved:
        b, a = line["before"] or {}, line["after"] or {}
        state = "new" if not b else "lost" if not a else ""
        sizes = [_gain(b, a, name, family) for name, family in _SIZES.items()]
        place = f"{base_name(line['file'])}:{line['line']}" if line["file"] else "no line"
        rows.append([place, state, *sizes, line["text"] or line["function"]])
    yield from view.table(("line", "", "FLOPs", "bytes", "held", "time", ""), rows, right=(2, 3, 4, 5))


_SIZES = {"flops": "count", "bytes": "bytes", "held": "bytes", "seconds": "seconds"}


def _gain(before: Mapping[str, Any], after: Mapping[str, Any], name: str, family: str) -> str:
    gain = (after.get(name) or 0) - (before.get(name) or 0)
    return f"{'+' if gain > 0 else ''}{shown(gain, family)}" if gain else ""


def _kernels(view: View, against: Report, found: Mapping[str, Any]) -> Iterator[str]:
    olds, news = find_target(against, found["target"]), find_target(view.report, found["target"])
    counts = f"{found['same']} the same, {len(found['changed'])} changed"
    yield f"kernels of {found['target']}: {counts}, {len(found['new'])} new, {len(found['lost'])} lost"
    rows = [["+", _kernel(news, i), ""] for i in found["new"]] + [["-", _kernel(olds, i), ""] for i in found["lost"]]
    for pair in found["changed"]:
        joined = [f"+{view.report['equations']['label'][row]}" for row in pair["joined"]]
        left = [f"-{against['equations']['label'][row]}" for row in pair["left"]]
        rows.append(["~", _kernel(news, pair["after"]), " ".join([*joined, *left])])
    if rows:
        yield from view.table(("", "kernel", "equations"), rows)


def _kernel(target: Target, index: int) -> str:
    kernel = target["kernels"][index]
    return f"{kernel['name']} {kernel['kind']} {kernel['type']}"


def _equations(view: View, against: Report, found: Mapping[str, Any]) -> Iterator[str]:
    counts = f"{found['same']} the same, {len(found['changed'])} changed"
    yield f"equations: {counts}, {len(found['new'])} new, {len(found['lost'])} lost"
    old, new = against["equations"]["text"], view.report["equations"]["text"]
    rows = [["~", f"{old[b]}  ->  {new[a]}", str(place_of(view.report, a))] for b, a in found["changed"]]
    rows += [["+", new[row], str(place_of(view.report, row))] for row in found["new"]]
    rows += [["-", old[row], str(place_of(against, row))] for row in found["lost"]]
    if rows:
        yield from view.table(("", "equation", "line"), rows)
