"""The schema: reports that keep it, slips that break it, files that are foreign or newer, and its page."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.inspection import reports
from tests.support.paths import ROOT
from xlamini.errors import ReportFormatError
from xlamini.inspection import schema

MADE = [reports.report, reports.measured, reports.sharded, reports.with_values, reports.failed, reports.changed]


@pytest.mark.parametrize("made", MADE)
def test_reports_keep_the_schema(made: Callable[[], Any]) -> None:
    assert schema.problems(made()) == []
    assert schema.problems(json.loads(json.dumps(made()))) == []


def broken(path: str, value: Any) -> dict[str, Any]:
    """The report with another value at a path such as `targets.0.name`."""
    report: Any = reports.report()
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inner = report
    for step in steps:
        inner = inner[step]
    inner[last] = value
    return report


@pytest.mark.sample(1)
@pytest.mark.parametrize(("path", "value", "problem"), [
    ("name", None, "name must be text, is missing"),
    ("totals.flops", float("nan"), "totals.flops must be a finite number, is nan"),
    ("totals.bytes", True, "totals.bytes must be a finite number, is True"),
    ("targets.0.name", 3, "targets[0].name must be text, is 3"),
    ("targets.0.kernels.0.rows", [17], "targets[0].kernels[0].rows[0] must be the index of one of the 17 rows, is 17"),
    ("targets.0.boundaries.0.producer", 4,
     "targets[0].boundaries[0].producer must be the index of one of the 4 kernels, is 4"),
    ("targets.0.hlo", 9, "targets[0].hlo must be the index of one of the 9 stages, is 9"),
    ("findings", {}, "findings must be a list, is {}"),
    ("final", -1, "final must be the index of one of the 9 stages, is -1"),
    ("stages.1.kind", "hlo2",
     "stages[1].kind must be one of source, jaxpr, stablehlo, pass, hlo, assembly, is 'hlo2'"),
    ("stages.1.rows", [[]], "stages[1] has 6 lines, and rows for 1"),
    ("equations.flops", [1], "equations.flops has 1 rows, equations.stage has 17"),
    ("equations.line", None, "equations.line must be a list, is missing"),
    ("equations.parent.4", 99, "equations.parent[4] must be the index of one of the 17 rows, is 99"),
    ("equations.rule.4", {"name": "f", "file": "a.py"}, "equations.rule[4].line is missing"),
    ("equations.operands.4", [1.0], "equations.operands[4][0] must be the index of one of the 17 rows, is 1.0"),
    ("memory.values.0.until", 9, "memory.values[0] lives from 0 to 9 of 8 moments"),
    ("memory", [], "memory must be a dict, is []"),
    ("findings.0.severity", "bad", "findings[0].severity must be one of info, warning, is 'bad'"),
])  # fmt: skip
def test_a_slip_is_found(path: str, value: Any, problem: str) -> None:
    assert schema.problems(broken(path, value)) == [problem]


def test_a_name_that_came_later_may_be_missing_but_must_be_right() -> None:
    found = reports.measured()
    del found["targets"][0]["kernels"][0]["measured"]
    assert schema.problems(found) == []
    found["targets"][0]["measured"]["low"] = "fast"
    assert schema.problems(found) == ["targets[0].measured.low must be a finite number, is 'fast'"]


def test_further_names_are_allowed() -> None:
    assert schema.problems(broken("targets.0.colour", "blue")) == []


def test_no_value_of_any_type_makes_the_check_itself_fail() -> None:
    for path in ("equations", "equations.stage", "targets.0", "targets.0.kernels", "stages.0.rows", "mesh", "memory"):
        for value in (None, 3, "text", [], [None], {}, {"a": 1}):
            schema.problems(broken(path, value))
    assert schema.problems([]) == ["a report must be a dict, is []"]


@pytest.mark.parametrize(("text", "message"), [
    ("<!doctype html>", r"old\.json is not a report of xlamini\.inspect: it is no JSON; make one by .* --json FILE"),
    ("\xff", "it is no JSON"),
    ('{"traceEvents": []}', "it has no 'schema' and 'equations'"),
    ("[1, 2]", "it has no 'schema' and 'equations'"),
    ('{"schema": "1", "equations": {}}', "it has no 'schema' and 'equations'"),
    ('{"schema": 2, "equations": {}, "made_with": {"xlamini": "0.9.1"}}',
     r"old\.json has schema 2, which xlamini 0\.9\.1 reads; this is .*, which reads schema 1: upgrade"),
    ('{"schema": 2, "equations": {}, "made_with": 3}', "which xlamini a newer one reads"),
    ('{"schema": 1, "equations": {}}', r"old\.json is damaged: made_with is missing, and \d+ more"),
])  # fmt: skip
def test_a_foreign_newer_or_damaged_file(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(ReportFormatError, match=message):
        schema.read_report(file)


def test_the_error_is_a_value_error_and_a_missing_file_is_missing(tmp_path: Path) -> None:
    assert issubclass(ReportFormatError, ValueError)
    with pytest.raises(FileNotFoundError):
        schema.read_report(tmp_path / "none.json")


def names(form: Any) -> set[str]:
    """Every name of a schema."""
    if isinstance(form, list):
        return names(form[0])
    if not isinstance(form, dict):
        return set()
    own = {name.rstrip("?") for name in form if name != "*"}
    return own.union(*(names(inner) for inner in form.values()))


def test_the_page_has_every_name() -> None:
    page = (ROOT / "docs/inspect-schema.md").read_text()
    assert {name for name in names(schema.SCHEMA) | names(schema.COLUMNS) if f"`{name}`" not in page} == set()
    assert f"schema {schema.VERSION}" in page
