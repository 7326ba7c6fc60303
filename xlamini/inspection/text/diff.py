"""What has changed from an earlier report: costs first, then lines, kernels and equations."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from xlamini.inspection.diff import diff, pairs_of, same_roof, slower
from xlamini.inspection.equations import Report, base_name, place_of
from xlamini.inspection.quantities import QUANTITIES, Target, find_target
from xlamini.inspection.text.view import Item, View
from xlamini.inspection.units import change, shown


def lines(view: View) -> Iterator[str]:
    yield ""
    if view.against is None:
        yield from view.say("not available: there is no earlier report; give against= (--diff)")
        return
    found = diff(view.against, view.report)
    names = {t["name"] for t in view.targets}
    costs = [c for c in found["costs"] if c["target"] in {None, *names} and {c["before"], c["after"]} != {None}]
    yield from view.table("costs", map(_cost, costs))
    for before, after in pairs_of(view.against, view.report):
        if after["name"] in names and not same_roof(before, after):
            yield from view.say(
                f"The predicted times of {after['name']} are not compared: the reports have other roofs for it."
            )
    for state, targets in found["targets"].items():
        yield from view.say(f"{state} targets: {', '.join(targets)}") if targets else ()
    yield ""
    yield from view.table("lines", map(_line, found["lines"]))
    for table, shown_as in (("inserted", _insertion), ("parts", partial(_amounts, family="seconds"))):
        if rows := [row for row in found[table] if row["target"] in names]:
            yield ""
            yield from view.table(table, map(shown_as, rows))
    for kernels in found["kernels"]:
        if kernels["target"] in names:
            yield ""
            yield from _kernels(view, view.against, kernels)
    yield ""
    yield from _equations(view, view.against, found["equations"])


def _cost(cost: Item) -> Item:
    return _amounts(cost, QUANTITIES[cost["quantity"]].family)


def _amounts(row: Item, family: str) -> Item:
    before, after = row["before"], row["after"]
    changed = change(before, after) + (", within the spread" if row["noise"] and before != after else "")
    return {**row, "before": shown(before, family), "after": shown(after, family), "change": changed}


def _line(line: Item) -> Item:
    b, a = line["before"] or {}, line["after"] or {}
    return {
        **line,
        "place": f"{base_name(line['file'])}:{line['line']}" if line["file"] else "no line",
        "state": "new" if not b else "lost" if not a else "",
        **{name: _gain(b, a, name, family) for name, family in _SIZES.items()},
        "measured": _signed(slower(b, a) if b and a else _more(b, a, "measured"), "seconds"),
        "text": line["text"] or line["function"],
    }


_SIZES = {"flops": "count", "bytes": "bytes", "held": "bytes", "seconds": "seconds"}


def _insertion(row: Item) -> Item:
    runs = [shown((row[side] or {}).get("runs", 0), "count") for side in ("before", "after")]
    return {**_line(row), "runs": " -> ".join(dict.fromkeys(runs))}


def _gain(before: Mapping[str, Any], after: Mapping[str, Any], name: str, family: str) -> str:
    return _signed(_more(before, after, name), family)


def _more(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> float:
    return (after.get(name) or 0) - (before.get(name) or 0)


def _signed(gain: float, family: str) -> str:
    return f"{'+' if gain > 0 else ''}{shown(gain, family)}" if gain else ""


def _kernels(view: View, against: Report, found: Mapping[str, Any]) -> Iterator[str]:
    olds, news = find_target(against, found["target"]), find_target(view.report, found["target"])
    counts = f"{found['same']} the same, {len(found['changed'])} changed"
    yield f"kernels of {found['target']}: {counts}, {len(found['new'])} new, {len(found['lost'])} lost"
    items = [{"mark": "+", "text": _kernel(news, i)} for i in found["new"]]
    items += [{"mark": "-", "text": _kernel(olds, i)} for i in found["lost"]]
    for pair in found["changed"]:
        joined = [f"+{view.report['equations']['label'][row]}" for row in pair["joined"]]
        left = [f"-{against['equations']['label'][row]}" for row in pair["left"]]
        items.append({"mark": "~", "text": _kernel(news, pair["after"]), "equations": " ".join([*joined, *left])})
    yield from view.table("kernels", items)


def _kernel(target: Target, index: int) -> str:
    kernel = target["kernels"][index]
    return f"{kernel['name']} {kernel['kind']} {kernel['type']}"


def _equations(view: View, against: Report, found: Mapping[str, Any]) -> Iterator[str]:
    counts = f"{found['same']} the same, {len(found['changed'])} changed"
    yield f"equations: {counts}, {len(found['new'])} new, {len(found['lost'])} lost"
    old, new = against["equations"]["text"], view.report["equations"]["text"]
    after, before = partial(place_of, view.report), partial(place_of, against)
    items = [{"mark": "~", "text": f"{old[b]}  ->  {new[a]}", "place": after(a)} for b, a in found["changed"]]
    items += [{"mark": "+", "text": new[row], "place": after(row)} for row in found["new"]]
    items += [{"mark": "-", "text": old[row], "place": before(row)} for row in found["lost"]]
    yield from view.table("equations", items)
