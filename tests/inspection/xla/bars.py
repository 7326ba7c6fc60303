"""What holds for every examined program: coverage, sums of costs, and an entry of the report that is plain JSON."""
from __future__ import annotations

import json
from typing import Any

import pytest

from xlamini.inspection.xla.entry import entry_of
from xlamini.inspection.xla.facts import Examined

KINDS = {"pass", "hlo", "assembly"}


def check(found: Examined) -> dict[str, Any]:
    """Check an examined program; returns its entry."""
    check_costs(found)
    return check_entry(found)


def check_entry(found: Examined) -> dict[str, Any]:
    """Check all but the costs; in the entry that is returned, the row of a label is its place among all labels."""
    assert found.coverage is not None and found.coverage.instructions
    assert found.coverage.with_id >= 0.95 * found.coverage.instructions
    assert found.coverage.with_id + len(found.coverage.inserted) == found.coverage.instructions
    labels: dict[str, int] = {}
    stages: list[dict[str, Any]] = [{"kind": "stablehlo"}]
    entry = entry_of(found, lambda label: labels.setdefault(label, len(labels)), lambda row: row + 1, stages, 2, 0)
    json.dumps([entry, stages], allow_nan=False)
    check_stages(stages, entry)
    check_indices(entry)
    return entry


def check_costs(found: Examined) -> None:
    """The kernels' costs are the program's, if every loop counts once."""
    assert found.cost is not None and found.cost.flops > 0
    assert sum(k.flops / k.runs for k in found.kernels) == pytest.approx(found.cost.flops, rel=0.01)
    assert sum(k.bytes / k.runs for k in found.kernels) == pytest.approx(found.cost.bytes, rel=0.01)
    assert all(k.seconds is not None and k.seconds >= 0 and k.time for k in found.kernels)


def check_stages(stages: list[dict[str, Any]], entry: dict[str, Any]) -> None:
    for i, stage in enumerate(stages[1:], 1):
        assert stage["kind"] in KINDS and stage["target"] == 2 and 0 <= stage["of"] < i
        assert len(stage["lines"]) == len(stage["rows"])
        assert stage["changed"] == bool(stage["lines"])
    hlo = stages[entry["hlo"]]
    assert hlo["kind"] == "hlo" and sum(map(bool, hlo["rows"])) > len(entry["kernels"]) / 2
    for kernel in entry["kernels"]:
        assert f" {kernel['name']} = " in f" {hlo['lines'][kernel['line']].removeprefix('  ROOT ')}"


def check_indices(entry: dict[str, Any]) -> None:
    kernels, moments = len(entry["kernels"]), len(entry["moments"])
    for boundary in entry["boundaries"]:
        assert boundary["bytes"] >= 0 and 0 <= boundary["producer"] < kernels
        assert boundary["consumers"] and all(0 <= each < kernels for each in boundary["consumers"])
    assert moments and all(0 <= b["first"] <= b["last"] < moments for b in entry["buffers"])
    assert max(m["bytes"] for m in entry["moments"]) >= max(b["bytes"] for b in entry["buffers"])
    assert any(b["row"] is not None for b in entry["buffers"])
