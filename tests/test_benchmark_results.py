"""The results of the benchmarks as data: reading and writing them, RESULTS.md, and what the site's pictures show."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.harness import Row, Side
from benchmarks.page import GROUPS, PAGE, TITLES, group, page, summary
from benchmarks.records import FOLDER, Record, newest, records, write
from benchmarks.targets.counts import Comparison, Counts
from benchmarks.targets.report import records_of
from benchmarks.timing import PER_SECOND

VERSIONS = {"python": "3.11.7", "jaxlib": "0.10.2", "jax": "0.10.2"}


def _record(case: str, row: str, ours: float, theirs: float, **more: object) -> Record:
    numbers = {"xlamini": {"median": ours}, "jax": {"median": theirs}}
    return Record(case, row, numbers, date="2026-11-24", machine="quiet", versions=VERSIONS, **more)


def test_the_page_is_made_of_the_data() -> None:
    assert PAGE.read_text() == page(newest()), "run `python -m benchmarks.page`"


@pytest.mark.parametrize("path", figures.PAGES, ids=lambda path: path.stem)
def test_first_pages_have_the_newest_figures(path: Path) -> None:
    text = path.read_text()
    assert text == figures.update(text, newest(), figures.PAGES[path]), "run `python -m benchmarks.page`"


def test_figures_say_what_was_measured_where_and_how_to_repeat_it() -> None:
    found = [_record(case, row, 0.25, 2.0) for case, row in figures.ROWS]
    text = figures.update(f"before\n{figures.START}old{figures.END}\nafter\n", found, "all.md")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert text.count("| 250 ms  | 2 s | **8×** |") == len(figures.ROWS)
    commands = " ".join(f"--only {case}" for case in dict.fromkeys(case for case, _ in figures.ROWS))
    assert f"`python -m benchmarks {commands}` repeats them." in text.replace("\n", " ")
    where = "on November 24, 2026, on a CPU (quiet), with jaxlib 0.10.2, JAX 0.10.2. [Every row](all.md)"
    assert where in text.replace("\n", " ")


def test_the_page_is_short() -> None:
    lines = PAGE.read_text().splitlines()
    assert len(lines) <= 200
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_each_line_is_a_record(path: Path) -> None:
    for line in path.read_text().splitlines():
        each = Record(**json.loads(line))
        assert each.date == path.stem and each.machine and each.versions.keys() >= VERSIONS.keys()
        assert all(number >= 0 for numbers in each.numbers.values() for number in numbers.values())


def test_each_picture_has_rows() -> None:
    assert GROUPS.keys() == TITLES.keys()
    assert [name for name in GROUPS if len(group(newest(), name)) < 10] == []


def test_the_newest_row_of_each_platform_counts(tmp_path: Path) -> None:
    failed = Row("sort", "2M", errors={"jax": "x"})
    rows = [Row("sort", "1M", values={"xlamini": [3.0, 1.0, 2.0], "jax": [4.0]}), failed]
    side = Side("xlamini", sys.executable)
    write(records([Row("sort", "1M", values={"xlamini": [9.0], "jax": [4.0]})], "cpu"), "old", [side], tmp_path)
    write([*records(rows, "cpu"), *records(rows, "cuda")], "quiet", [side], tmp_path)
    found = newest(tmp_path)
    assert [(each.row, each.platform, each.machine, each.ratio()) for each in found] == [
        ("1M", "cpu", "quiet", 0.5),
        ("1M", "cuda", "quiet", 0.5),
    ]
    assert found[0].numbers["xlamini"] == {"median": 2.0, "least": 1.0, "most": 3.0}
    assert found[0].versions["python"] == sys.version.split()[0]


def test_ratios() -> None:
    assert _record("chain", "equations", 200.0, 100.0, unit=PER_SECOND).ratio() == 0.5
    assert _record("targets", "sort", 0, 0, unit="cycles").ratio() == 1.0
    assert Record("inspect_report", "page", {"xlamini": {"median": 2.0}}).ratio() is None
    assert _record("kernels", "sort", 1.054, 1.0, target=1.05).missed is False
    assert _record("kernels", "sort", 1.06, 1.0, target=1.05).missed is True


def test_a_comparison_for_a_target_misses_its_bar_by_memory() -> None:
    counts = {"xlamini": Counts(90, 5, 10.0, 105), "jax": Counts(100, 5, 10.0, 100)}
    (found,) = records_of([Comparison("sort", "tpu:v5e", counts), Comparison("sin", "gpu:h200", {"jax": "Error"})])
    assert (found.ratio(), found.ratio("memory"), found.missed, found.unit) == (0.9, 1.05, True, "cycles")


def test_a_bar_that_is_missed_is_seen() -> None:
    few = [_record("chain", "a chain", 2.0, 1.0, target=1.5)]
    many = [_record("kernels", f"kernel: {n}", n, 4.0, target=1.05) for n in range(1, 8)]
    text = page([*few, *many])
    assert "| 2026-11-24 | a chain | 2 s     | 1 s | 2.00  | 1.5 MISSED |" in text
    assert "- **kernels**, 2026-11-24: kernel: **5 5 s / 4 s 1.25, bar 1.05 MISSED**;" in text
    assert text.count("MISSED**") == 3 and "1 0.25; 2 0.50; 3 0.75; 1 more within 0.02 of 1." in text


def test_the_summary_says_what_is_slower() -> None:
    found = [_record("a", "one", 3.0, 2.0), _record("a", "two", 1.0, 1.0), _record("a", "three", 2.0, 1.0)]
    assert summary(found) == "1 of 3 are at most 1.02 of JAX. Above it: three 2.00; one 1.50."
