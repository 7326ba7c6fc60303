"""What a reader should look at first: at most seven findings in plain words, each with a line and a screen.

A rule is a generator over the report's content, as the schema has it. The first rules are the most urgent.
"""
from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from xlamini.analysis.lints.finding import Finding
from xlamini.runtime.execution.host_memory import shown_bytes

MOST = 7
Content = dict[str, Any]
Rule = Callable[[Content], Iterator[dict[str, Any]]]

_LARGE = 0.05
"""The share of all bytes from which a copy or an intermediate is worth a finding."""


def does_not_fit(report: Content) -> Iterator[dict[str, Any]]:
    for target in _compiled(report):
        memory = target["memory"]
        if memory and memory["capacity"] and memory["peak"] > memory["capacity"]:
            text = f"{target['name']}: needs {shown_bytes(memory['peak'])}, but has {shown_bytes(memory['capacity'])}"
            edit = "Make the batch smaller, or use xlamini.checkpoint."
            yield _finding("does not fit", text, edit, "memory", "warning")


def inserted_collectives(report: Content) -> Iterator[dict[str, Any]]:
    for target in _compiled(report):
        inserted = [c for c in target["collectives"] if not c["asked"]]
        if inserted:
            largest = max(inserted, key=lambda c: c["bytes"] * c["times"])
            text = (
                f"{target['name']}: the partitioner inserted {len(inserted)} collectives; the largest, "
                f"{largest['kind']}, moves {shown_bytes(largest['bytes'] * largest['times'])}"
            )
            edit = "Give the arguments or out_sharding the sharding in which the line computes."
            yield _finding("inserted collective", text, edit, "sharding", "warning", largest["row"])


def recompiled(report: Content) -> Iterator[dict[str, Any]]:
    kinds = Counter(c["cause"]["kind"] for c in report["compilations"])
    kinds.pop("first call", None)
    if sum(kinds.values()) >= 3:
        kind, count = kinds.most_common(1)[0]
        edit = next(c["cause"]["edit"] for c in report["compilations"] if c["cause"]["kind"] == kind)
        text = f"compiled {len(report['compilations'])} times in this process, {count} of them for: {kind}"
        yield _finding("compilations", text, edit, "compilations", "warning")


def copies(report: Content) -> Iterator[dict[str, Any]]:
    for target in _compiled(report):
        whole = sum(kernel["bytes"] for kernel in target["kernels"])
        made = [k for k in target["kernels"] if k["inserted"] and k["kind"] == "copy"]
        share = sum(k["bytes"] for k in made) / whole if whole else 0.0
        if share > _LARGE:
            text = f"{target['name']}: {len(made)} copies that XLA put in move {share:.0%} of all bytes"
            edit = "Look at the layouts of their operands: a transpose near by may be left out."
            yield _finding("copies", text, edit, "kernels", "info", ratio=1 / (1 - share) if share < 1 else None)


def kept_for_backward(report: Content) -> Iterator[dict[str, Any]]:
    memory = report["memory"]
    kept = [v for v in memory["values"] if v["kept_for_backward"]] if memory else []
    share = sum(v["bytes"] for v in kept) / memory["peak"] if kept and memory["peak"] else 0.0
    if share > 0.3:
        name = kept[0]["variable"] or kept[0]["type"]
        text = f"{share:.0%} of the peak is kept for the backward pass; the largest value is {name}"
        edit = "xlamini.checkpoint computes it again."
        yield _finding("kept for backward", text, edit, "memory", row=kept[0]["made"])


def intermediates(report: Content) -> Iterator[dict[str, Any]]:
    for target in _compiled(report):
        whole = sum(kernel["bytes"] for kernel in target["kernels"])
        once = [b for b in target["boundaries"] if len(b["consumers"]) == 1 and b["bytes"] > _LARGE * whole]
        if once:
            largest = max(once, key=lambda b: b["bytes"])
            rows = target["kernels"][largest["producer"]]["rows"]
            reason = f": {largest['reason']}" if largest["reason"] else ""
            text = (
                f"{target['name']}: {largest['value']} ({shown_bytes(largest['bytes'])}) is written to memory and read "
                f"once{reason}"
            )
            yield _finding("intermediate", text, "", "kernels", row=rows[-1] if rows else None)


RULES: list[Rule] = [does_not_fit, inserted_collectives, recompiled, copies, kept_for_backward, intermediates]


def findings_of(report: Content, lints: list[Finding]) -> list[dict[str, Any]]:
    """The findings of the rules and of `lint`, the most urgent first; one of each kind."""
    found = itertools.chain(*(rule(report) for rule in RULES), (_of_lint(report, lint) for lint in lints))
    first: dict[str, dict[str, Any]] = {}
    for each in found:
        first.setdefault(each["kind"], each)
    ranked = sorted(first.values(), key=lambda each: each["severity"] != "warning")
    return [_with_line(report, each) for each in ranked[:MOST]]


def _compiled(report: Content) -> list[Content]:
    return [target for target in report["targets"] if target["error"] is None]


def _finding(
    kind: str,
    text: str,
    edit: str,
    screen: str,
    severity: str = "info",
    row: int | None = None,
    ratio: float | None = None,
) -> dict[str, Any]:
    words = {"kind": kind, "severity": severity, "text": text, "edit": edit}
    return {**words, "row": row, "screen": screen, "ratio": ratio}


def _of_lint(report: Content, lint: Finding) -> dict[str, Any]:
    equations, place = report["equations"], lint.place
    files = [source["file"] for source in report["sources"]]
    number = files.index(place.file) if place.file in files else None
    here = zip(equations["stage"], equations["source"], equations["line"], strict=True)
    at = report["final"], number, place.line
    row = next((i for i, position in enumerate(here) if position == at), None)
    return _finding(lint.rule.replace("_", " "), lint.message, lint.fix, "source", "warning", row, lint.ratio) | {
        "source": number,
        "line": place.line or None,
    }


def _with_line(report: Content, found: dict[str, Any]) -> dict[str, Any]:
    """With the user's line, which follows from the row where there is one."""
    row, equations = found["row"], report["equations"]
    place = {"source": None, "line": None}
    if row is not None:
        place = {"source": equations["source"][row], "line": equations["line"][row]}
    return {**place, **found}
