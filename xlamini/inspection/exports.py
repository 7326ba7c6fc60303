"""A report for other viewers: dot, Model Explorer, Perfetto. Each takes the report as its dict."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from xlamini.inspection.equations import Report, place_of, rows_of, type_of
from xlamini.inspection.neighbourhood import MOST_NODES, around, chosen_row
from xlamini.inspection.quantities import Target


def dot(report: Report, row: int | str | None = None, most: int = MOST_NODES) -> str:
    """The equations around one as a graph for Graphviz, at most `most` of them, in a box for each named scope.

    Raises:
      ValueError: for a row or label that is not there.
    """
    middle = chosen_row(report, row)
    nodes = [] if middle is None else sorted(around(report, middle, most))
    columns, by_scope = report["equations"], defaultdict[str, list[int]](list)
    for node in nodes:
        by_scope[columns["scope"][node]].append(node)
    lines = ["digraph xlamini {", "  node [shape=box];"]
    for number, (scope, inside) in enumerate(by_scope.items()):
        boxed = [f"  {_node(report, node, node == middle)}" for node in inside]
        box = [f"  subgraph cluster_{number} {{", f"    label={_quoted(scope)};", *boxed, "  }"]
        lines += box if scope else boxed
    edges = [(operand, node) for node in nodes for operand in dict.fromkeys(columns["operands"][node])]
    lines += [f"  n{operand} -> n{node};" for operand, node in edges if operand in {*nodes}]
    return "\n".join([*lines, "}"])


def _node(report: Report, row: int, chosen: bool) -> str:
    columns = report["equations"]
    text = _quoted(columns["label"][row], type_of(columns["text"][row]), str(place_of(report, row)))
    return f"  n{row} [label={text}{', penwidth=3' if chosen else ''}];"


def _quoted(*lines: str) -> str:
    """A quoted string of dot, with a line break between the parts."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def model_explorer(report: Report) -> dict[str, Any]:
    """A graph for each jaxpr of the report, for Model Explorer: its namespaces are the named scopes."""
    stages = [(i, stage) for i, stage in enumerate(report["stages"]) if stage["kind"] == "jaxpr"]
    graphs = [{"id": f"{stage['title']} (stage {i})", "nodes": [_explored(report, row) for row in rows_of(report, i)]}
              for i, stage in stages]  # fmt: skip
    return {"label": report["name"], "graphs": graphs}


_ATTRIBUTES = ("text", "direction", "variable", "flops", "bytes", "held", "runs", "rewrite")


def _explored(report: Report, row: int) -> dict[str, Any]:
    columns = report["equations"]
    known = [(name, columns[name][row]) for name in _ATTRIBUTES if columns[name][row] is not None]
    place = place_of(report, row)
    attributes = [*known, ("line", f"{place}  {place.text}".rstrip())]
    return {
        "id": str(row),
        "label": columns["primitive"][row],
        "namespace": columns["scope"][row],
        "attrs": [{"key": name, "value": str(value)} for name, value in attributes],
        "incomingEdges": [
            {"sourceNodeId": str(operand), "sourceNodeOutputId": "0", "targetNodeInputId": str(i)}
            for i, operand in enumerate(columns["operands"][row])
        ],
        "outputsMetadata": [{"id": "0", "attrs": [{"key": "type", "value": type_of(columns["text"][row])}]}],
    }


def perfetto(report: Report) -> dict[str, Any]:
    """A trace for Perfetto: the phases of compilation, and each target's kernels one after another by their time.

    Kernels without a time are left out. The track's name says what its times are, such as "predicted by XLA".
    """
    events = [_track(0, "compilation"), *_slices(0, _phases(report))]
    for number, target in enumerate(report["targets"], 1):
        kernels = [k for k in target["kernels"] or () if k["seconds"] is not None]
        what = ", ".join(dict.fromkeys(k["time"] or "of unknown source" for k in kernels)) or "without times"
        events += [_track(number, f"kernels of {target['name']}: {what}"), *_slices(number, _runs(report, kernels))]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


Slice = tuple[str, float, dict[str, Any]]
"""A name, seconds, and what is shown about it."""


def _phases(report: Report) -> Iterator[Slice]:
    """The stages that belong to no target, then the phases of each target."""
    for stage in report["stages"]:
        if stage["seconds"] is not None and stage["target"] is None:
            yield stage["title"], stage["seconds"], {"count": stage["count"]}
    for target in report["targets"]:
        for phase, seconds in (target["seconds"] or {}).items():
            if seconds is not None:
                yield f"{phase} for {target['name']}", seconds, {}


def _runs(report: Report, kernels: list[Target]) -> Iterator[Slice]:
    for kernel in kernels:
        places = dict.fromkeys(str(place_of(report, row)) for row in kernel["rows"])
        shown = {name: kernel[name] for name in ("kind", "type", "runs", "flops", "bytes", "time")}
        yield kernel["name"], kernel["seconds"], {**shown, "lines": ", ".join(places)}


def _track(number: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": number, "tid": 0, "args": {"name": name}}


def _slices(number: int, slices: Iterator[Slice]) -> Iterator[dict[str, Any]]:
    """Slices one after another, in microseconds.

    Perfetto cuts them to whole nanoseconds, and drops one that then begins before the last ends. So each has whole
    nanoseconds, at least one, and a tenth keeps its start from being cut to the nanosecond before.
    """
    start = 0
    for name, seconds, about in slices:
        length = max(round(1e9 * seconds), 1)
        when = {"ts": (start + 0.1) / 1000, "dur": length / 1000}
        yield {"ph": "X", "name": name, "pid": number, "tid": 0, **when, "args": about}
        start += length
