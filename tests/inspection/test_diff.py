"""The difference of two reports: no difference, a known edit, and the rules that pair equations and kernels."""
from __future__ import annotations

import json
from typing import Any

import pytest

from tests.inspection import reports
from xlamini.inspection.diff import diff
from xlamini.inspection.matching import match_equations, match_kernels


def program(*rows: tuple[str, str, list[int]]) -> dict[str, Any]:
    """A report of one jaxpr: the scope, the text and the operands of each equation."""
    made = [reports.equation(0, text, 5, operands, scope=scope) for scope, text, operands in rows]
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


SIN, COS = "b:f32[8] = sin a", "c:f32[8] = cos b"


@pytest.mark.parametrize(("before", "after", "pairs"), [
    # as often on both sides: in order
    ([("", SIN, []), ("", SIN, [0])], [("", SIN, []), ("", SIN, [0])], {0: 0, 1: 1}),
    # another type: by its operand, which has a partner
    ([("", COS, []), ("", SIN, [0])], [("", COS, []), ("", "b:f16[8] = sin a", [0])], {0: 0, 1: 1}),
    # another scope: by its user, which has a partner
    ([("a", SIN, []), ("", COS, [0])], [("b", SIN, []), ("", COS, [0])], {0: 0, 1: 1}),
    # one more of a key: its neighbour says which is new
    ([("", SIN, []), ("", COS, [0])], [("", SIN, []), ("", SIN, []), ("", COS, [1])], {1: 0, 2: 1}),
    # nothing but the key: in order, as far as they go
    ([("", SIN, []), ("", SIN, [])], [("", SIN, []), ("", SIN, []), ("", SIN, [])], {0: 0, 1: 1}),
    # another primitive has no partner
    ([("", SIN, []), ("", COS, [0])], [("", SIN, []), ("", "c:f32[8] = tan b", [0])], {0: 0}),
    # the same key goes before the same primitive
    ([("", COS, []), ("x", SIN, [0]), ("", SIN, [0])], [("", COS, []), ("", SIN, [0]), ("y", SIN, [0])],
     {0: 0, 1: 2, 2: 1}),
])  # fmt: skip
def test_pairs_of_equations(before: list[Any], after: list[Any], pairs: dict[int, int]) -> None:
    assert match_equations(program(*before), program(*after)) == pairs


def test_kernels_are_paired_by_contents_then_by_type() -> None:
    def kernel(*rows: int, type: str = "f32[8]") -> dict[str, Any]:
        return reports.kernel("k", "fusion", type, [*rows])

    before = [kernel(0, 1), kernel(2), kernel(), kernel(type="s32[]")]
    after = [kernel(type="s32[]"), kernel(1, 2, 3), kernel(0), kernel(), kernel()]
    partners = {0: 0, 1: 1, 2: 2}
    # the fusion of rows 1 and 2 shares one with each kernel before: the first of them is its partner
    assert match_kernels(before, after, partners) == {1: 0, 0: 3, 3: 2}
    assert match_kernels(before, [kernel(0, 1), kernel(2)], partners) == {0: 0, 1: 1}


def test_many_equations_of_one_key() -> None:
    rows = [("", f"v:f32[8] = sin v{i}", [i - 1] if i else []) for i in range(10_000)]
    partners = match_equations(program(*rows), program(*rows[:9_990], *[("", "c:f32[8] = cos b", [9_989])]))
    assert len(partners) == 9_990
