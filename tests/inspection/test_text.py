"""The text twins of the screens: snapshots, what is not available, choices, lines that fit, names that are hostile."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.inspection import reports
from tests.inspection.shown_screens import SHOWN
from xlamini.inspection.text import DESCRIPTIONS, SCREENS, text

Snapshot = Callable[[str, str], None]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SHOWN)
def test_screen(name: str, snapshot: Snapshot) -> None:
    made, screen, choices = SHOWN[name]
    snapshot(f"inspect_{name}", text(made(), screen, **choices))


def test_screens_are_described() -> None:
    assert list(DESCRIPTIONS) == list(SCREENS)
    tables = [table for screen in DESCRIPTIONS.values() for table in screen["tables"].values()]
    columns = [column for table in tables for column in table["columns"]]
    units = "text code amount place label kernel integer number share bytes count seconds".split()
    assert {column.get("unit", "text") for column in columns} == set(units)
    assert all(column["field"] and column.get("on", "page") in ("page", "text") for column in columns)


@pytest.mark.parametrize("screen", ["summary", "kernels", "roofline", "memory", "sharding", "targets", "rewrites"])
def test_a_target_without_compiler_says_so_by_itself(screen: str) -> None:
    shown = text(reports.report(), screen)
    assert "not available for tpu:v5e:2x2: its compiler is missing: pip install libtpu" in shown
    assert "not available for here" not in shown


def test_a_part_that_a_target_lacks_says_why() -> None:
    report = reports.report()
    report["targets"][0]["unavailable"] = {"boundaries": "XLA's text is of an unknown form"}
    report["targets"][0]["roof"] = None
    assert "not available for here: XLA's text is of an unknown form" in text(report, "kernels", target="here")
    assert "copy.3" in text(report, "kernels", target="here")
    assert "not available for here: the report does not have its roof" in text(report, "roofline", target="here")


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize(
    "made", [reports.report, reports.measured, reports.sharded, reports.with_values, reports.failed]
)
@pytest.mark.parametrize("width", [40, 72])
def test_no_line_is_wider_than_asked(screen: str, made: Callable[[], Any], width: int) -> None:
    lines = text(made(), screen, width=width, against=reports.changed()).splitlines()
    assert [line for line in lines if len(line) > width] == []


def test_without_source_text_lines_have_numbers() -> None:
    report = reports.report()
    report["sources"][0]["lines"] = None
    shown = text(report, "source")
    assert "train.py (without its text)" in shown and "tanh(x" not in shown
    assert [line.split()[0] for line in shown.splitlines() if line[:4].strip().isdigit()] == ["5", "6", "9"]


def test_values_without_an_equation() -> None:
    report = reports.with_values()
    for value in report["values"]:
        value["row"] = None
    assert "First NaN or infinity: no line, iteration 3: no equation" in text(report, "values")


def test_a_limit_says_what_is_left_out() -> None:
    assert "… and 2 more; limit=4 shows all" in text(reports.report(), "kernels", limit=2)


def test_names_cannot_steer_the_terminal() -> None:
    report = reports.report()
    evil = "\x1b[2J\r\u202e"
    report["name"] = report["sources"][0]["lines"][4] = report["targets"][0]["kernels"][0]["name"] = evil
    report["targets"][0]["device"] = report["stages"][2]["title"] = report["stages"][6]["lines"][0] = evil
    for screen in SCREENS:
        for stage in (None, 2, 6):
            shown = text(report, screen, stage=stage)
            assert all(c.isprintable() or c == "\n" for c in shown)


@pytest.mark.parametrize(("choices", "message"), [
    ({"screen": "kernel"}, r"text: there is no screen 'kernel' \(known: summary, .*\); did you mean kernels\?"),
    ({"target": "hare"}, r"target: the report has no 'hare', only here, tpu:v5e:2x2; did you mean here\?"),
    ({"screen": "rewrites", "stage": 9}, "stage: the report has stages 0 to 8, got 9"),
    ({"screen": "neighbourhood", "row": 99}, "row: the report has rows 0 to 16, got 99"),
    ({"screen": "neighbourhood", "row": "tan#e1"}, r"no equation 'tan#e1'; did you mean tanh#e1"),
    ({"width": 10}, "text: width must be at least 40 and limit at least 1, got 10 and 20"),
])  # fmt: skip
def test_wrong_choices(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        text(reports.report(), **choices)
