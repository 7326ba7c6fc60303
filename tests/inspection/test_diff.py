"""The difference of two reports: no difference, a known edit, and the rules that pair equations and kernels."""
from __future__ import annotations

import json
from typing import Any

import pytest

from tests.inspection import reports
from tests.support.paths import TESTS
from xlamini.inspection.diff import diff
from xlamini.inspection.matching import match_equations, match_kernels


def program(*rows: dict[str, Any]) -> dict[str, Any]:
    """A report of one jaxpr: each equation's text, operands, and what else differs from `reports.equation`."""
    made = [reports.equation(0, **{"line": 5, **row}) for row in rows]
    return {**reports.report(), "equations": reports.table(made), "final": 0}


def test_a_report_does_not_differ_from_itself() -> None:
    found = diff(reports.sharded(), reports.sharded())
    assert found["lines"] == [] and found["targets"] == {"lost": [], "new": []}
    assert found["equations"] == {"same": 8, "changed": [], "lost": [], "new": []}
    assert found["kernels"][0] == {"target": "here", "same": 4, "changed": [], "lost": [], "new": []}
    assert all(cost["before"] == cost["after"] for cost in found["costs"])


def test_a_known_edit() -> None:
    found = diff(reports.report(), reports.changed())
    costs = {(c["quantity"], c["target"]): (c["before"], c["after"]) for c in found["costs"]}
    assert costs["flops", "here"] == (2080, 2720) and costs["peak", "tpu:v5e:2x2"] == (None, None)
    assert costs["equations", None] == (8, 9)
    top = found["lines"][0]
    assert (top["line"], top["before"], top["after"]["flops"]) == (7, None, 672)
    lost = next(line for line in found["lines"] if line["after"] is None)
    assert (lost["text"], lost["before"]["flops"]) == ("return (h * h).sum()", 32)
    assert found["equations"] == {"same": 7, "changed": [], "lost": [12], "new": [12, 17]}
    kernels = found["kernels"][0]
    assert kernels["changed"] == [{"before": 1, "after": 1, "left": [12], "joined": [12, 17]}]
    assert kernels["lost"] == [2] and kernels["new"] == [] and kernels["same"] == 2
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_measured_times_are_compared_beyond_the_spread_of_their_calls() -> None:
    found = diff(reports.measured(), reports.slower())
    (cost,) = [cost for cost in found["costs"] if (cost["quantity"], cost["target"]) == ("time", "here")]
    assert (cost["before"], cost["after"], cost["noise"]) == (1e-3, 1.5e-3, False)
    parts = {part["part"]: (part["before"], part["after"], part["noise"]) for part in found["parts"]}
    assert parts["put in by XLA"] == pytest.approx((2e-5, 2.2e-5, True))
    assert parts["between kernels"] == (5e-5, 2.5e-4, False)
    assert parts["before the first kernel and after the last"] == (1.5e-4, 1.6e-4, True)
    moved = {line["line"]: line["after"]["measured"] - line["before"]["measured"] for line in found["lines"]}
    assert [*moved] == [5, 9] and moved[5] > moved[9] > 0  # line 6 has noise alone
    near = reports.measured()
    near["targets"][0]["measured"]["seconds"] = 1.1e-3
    costs = diff(reports.measured(), near)["costs"]
    (cost,) = [cost for cost in costs if (cost["quantity"], cost["target"]) == ("time", "here")]
    assert cost["noise"] and cost["after"] == 1.1e-3
    assert diff(reports.report(), reports.measured())["lines"] == []
    assert diff(reports.report(), reports.measured())["parts"] == []


def test_a_line_that_only_moved_is_the_same() -> None:
    after = reports.report()
    after["sources"][0]["lines"] = ["", "", *reports.SOURCE]
    after["sources"][0]["file"] = "/elsewhere/train.py"
    after["equations"]["line"] = [line + 2 for line in after["equations"]["line"]]
    assert diff(reports.report(), after)["lines"] == []


def test_targets_of_one_report_only() -> None:
    before, after = reports.report(), reports.report()
    before["targets"][1]["name"], after["targets"][0]["name"] = "gpu:h200", "there"
    found = diff(before, after)
    assert found["targets"] == {"lost": ["here", "gpu:h200"], "new": ["there", "tpu:v5e:2x2"]}
    assert found["kernels"] == [] and [c["quantity"] for c in found["costs"]] == ["equations"]


def test_a_failed_report_has_no_final_program() -> None:
    found = diff(reports.report(), {**reports.failed(), "final": None})
    assert found["equations"]["lost"] == [*range(9, 17)] and found["equations"]["new"] == []


GOLDEN = json.loads((TESTS / "golden" / "report_matching.json").read_text())
"""Cases that the page must get right too: frontend/test/match.test.mjs."""


def golden(part: str) -> Any:
    cases = GOLDEN[part]
    return pytest.mark.parametrize("case", cases, ids=[case["case"] for case in cases])


@golden("equations")
def test_pairs_of_equations(case: dict[str, Any]) -> None:
    before, after = [program(*case[side]) for side in ("before", "after")]
    assert match_equations(before, after) == {a: b for b, a in case["pairs"]}


@golden("kernels")
def test_pairs_of_kernels(case: dict[str, Any]) -> None:
    partners = {a: b for b, a in case["equations"]}
    assert match_kernels(case["before"], case["after"], partners) == {a: b for b, a in case["pairs"]}


def timed(side: dict[str, Any]) -> dict[str, Any]:
    """A report with a kernel for each equation."""
    rows = [{"scope": "", "text": "b:f32[8] = sin a", "operands": [], **row} for row in side["rows"]]
    sample = reports.kernel("k", "fusion", "f32[8]", [0]) | {"shares": [1]}
    kernels = [
        {**sample, "rows": [i], "seconds": row.pop("seconds"), "measured": row.pop("measured", None)}
        for i, row in enumerate(rows)
    ]
    here = {**reports.HERE, "kernels": kernels, "roof": side.get("roof")}
    return {**program(*rows), "sources": side["sources"], "targets": [here]}


@golden("lines")
def test_lines_that_moved(case: dict[str, Any]) -> None:
    lines = diff(timed(case["before"]), timed(case["after"]))["lines"]
    costs = ("flops", "bytes", "held", "seconds", "equations")
    found = [
        [line["file"], line["line"], line["text"], *(side and [side[name] for name in costs] for side in sides)]
        for line in lines
        for sides in [(line["before"], line["after"])]
    ]
    assert found == case["moves"]


def with_kernels(side: dict[str, Any]) -> dict[str, Any]:
    """A report with these kernels of one target."""
    sample = reports.kernel("k", "copy", "f32[8]", [])
    kernels = [{**sample, **kernel, "shares": [1] * len(kernel["rows"])} for kernel in side["kernels"]]
    rows = [{"scope": "", **row} for row in side["rows"]]
    return {**program(*rows), "sources": side["sources"], "targets": [{**reports.HERE, "kernels": kernels}]}


@golden("inserted")
def test_what_xla_put_in(case: dict[str, Any]) -> None:
    moved = diff(with_kernels(case["before"]), with_kernels(case["after"]))["inserted"]
    costs = ("runs", "bytes", "measured")
    found = [
        [row["kind"], row["type"], row["line"], *(side and [side[name] for name in costs] for side in sides)]
        for row in moved
        for sides in [(row["before"], row["after"])]
    ]
    assert found == case["moves"]


def _sin(text: str, operands: list[int]) -> dict[str, Any]:
    return {"scope": "", "text": text, "operands": operands}


def test_many_equations_of_one_key() -> None:
    rows = [_sin(f"v:f32[8] = sin v{i}", [i - 1] if i else []) for i in range(10_000)]
    partners = match_equations(program(*rows), program(*rows[:9_990], _sin("c:f32[8] = cos b", [9_989])))
    assert len(partners) == 9_990
