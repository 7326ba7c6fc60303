"""The rewrites of the program: xlamini's from jaxpr to jaxpr, then XLA's passes; one of them with before and after."""
from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from xlamini.inspection.equations import Report, base_name, rows_of
from xlamini.inspection.text.view import View


def lines(view: View) -> Iterator[str]:
    stages = view.report["stages"]
    yield ""
    if view.stage is None:
        yield from _list(view)
    elif not 0 <= view.stage < len(stages):
        raise ValueError(f"stage: the report has stages 0 to {len(stages) - 1}, got {view.stage}")
    elif stages[view.stage]["kind"] == "jaxpr":
        yield from _aligned(view, view.stage)
    else:
        yield from _line_by_line(view, view.stage)


def _list(view: View) -> Iterator[str]:
    targets, names = view.report["targets"], {t["name"] for t in view.targets}
    stages = [
        {**stage, "number": number, "target": None if stage["target"] is None else targets[stage["target"]]["name"]}
        for number, stage in enumerate(view.report["stages"])
    ]
    chosen = [stage for stage in stages if stage["target"] is None or stage["target"] in names]
    changed = [stage | _delta(view.report, stage["number"]) for stage in chosen if stage["changed"]]
    yield from view.table("stages", changed)
    if len(changed) < len(chosen):
        yield f"passes that changed nothing and are not in the list: {len(chosen) - len(changed)}"
    for target in view.targets:
        reason = (target["unavailable"] or {}).get("passes")
        yield from view.part(target, view.say(f"not available for {target['name']}: {reason}") if reason else ())


def _delta(report: Report, number: int) -> dict[str, str | None]:
    """How many equations a rewrite added, and removed; None for what is no rewrite of a jaxpr."""
    stage = report["stages"][number]
    if stage["kind"] != "jaxpr" or stage["of"] is None or report["stages"][stage["of"]]["kind"] != "jaxpr":
        return {"added": None, "removed": None}
    children, before = _children(report, number, stage["of"]), len(rows_of(report, stage["of"]))
    return {
        "added": f"+{len(rows_of(report, number)) - len(children)}",
        "removed": f"-{before - len(children)}",
    }


def _children(report: Report, number: int, of: int) -> dict[int, list[int]]:
    """For each row of the stage `of` that has any: the rows of a stage that were derived from it."""
    found: dict[int, list[int]] = {}
    before = {*rows_of(report, of)}
    for row in rows_of(report, number):
        parent = report["equations"]["parent"][row]
        if parent in before:
            found.setdefault(parent, []).append(row)
    return found


def _aligned(view: View, number: int) -> Iterator[str]:
    """Before and after, an equation beside its parent: `-` removed, `+` added, `~` changed, `=` the same text."""
    report, stage = view.report, view.report["stages"][number]
    yield f"{stage['title']} (stage {number})"
    if stage["of"] is None or report["stages"][stage["of"]]["kind"] != "jaxpr":
        yield from stage["lines"]
        return
    yield f"before: {report['stages'][stage['of']]['title']} (stage {stage['of']})"
    yield from view.table("pairs", _pairs(report, number))


def _pairs(report: Report, number: int) -> Iterator[dict[str, str]]:
    """In the order after, what was removed before its successor."""
    of = report["stages"][number]["of"]
    children, text = _children(report, number, of), report["equations"]["text"]
    removed = [row for row in rows_of(report, of) if row not in children]
    firsts = {rows[0]: parent for parent, rows in children.items()}
    for row in rows_of(report, number):
        parent = firsts.get(row)
        while parent is not None and removed and removed[0] < parent:
            yield {"before": text[removed.pop(0)], "mark": "-"}
        before = "" if parent is None else text[parent]
        mark = "+" if parent is None else "=" if before == text[row] else "~"
        yield {"before": before, "mark": mark, "after": text[row], "rule": _rule(report["equations"]["rule"][row])}
    for row in removed:
        yield {"before": text[row], "mark": "-"}


def _rule(rule: Any) -> str:
    return "" if rule is None else f"{rule['name']} {base_name(rule['file'])}:{rule['line']}"


def _line_by_line(view: View, number: int) -> Iterator[str]:
    """The lines of a pass that differ from those of the last stage before it that has text of the same kind."""
    stages, stage = view.report["stages"], view.report["stages"][number]
    of = stage["of"]
    while of is not None and not stages[of]["changed"]:
        of = stages[of]["of"]
    yield f"{stage['title']} (stage {number})"
    comparable = of is not None and stages[of]["kind"] in ("pass", "hlo") and stage["kind"] in ("pass", "hlo")
    shown_lines = stage["lines"]
    if comparable and of is not None:
        diff = difflib.unified_diff(stages[of]["lines"], stage["lines"], n=1, lineterm="")
        shown_lines = [line for line in diff if not line.startswith(("---", "+++"))] or ["nothing changed"]
    yield from shown_lines[: view.limit]
    if len(shown_lines) > view.limit:
        yield f"… and {len(shown_lines) - view.limit} more lines; limit={len(shown_lines)} shows all"
