"""The command for the libraries' own tests counts what pytest reports, and takes the same share over both."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.ecosystem import suites
from tests.ecosystem.share import belongs
from tests.support.paths import ROOT

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    "output, counts",
    [
        ("..F\nFAILED a.py::b - 3 passed\n1 failed, 2 passed in 1.31s\n", {"failed": 1, "passed": 2}),
        ("2 skipped, 3 errors in 61.00s (0:01:01)\n", {"skipped": 2, "error": 3}),
        ("7 deselected in 0.10s\nsome warning\n", {"deselected": 7}),
        ("1 timeout: optax/a_test.py took more than 5 s\n", {"timeout": 1}),
        ("Fatal Python error: Aborted\n", {"crashed": 1}),
    ],
)
def test_counts_are_those_of_the_last_line_that_has_some(output: str, counts: dict[str, int]) -> None:
    assert suites.counts_of(output) == Counter(counts)


def test_a_larger_share_has_the_tests_of_a_smaller_one() -> None:
    names = [f"test_{k}" for k in range(1000)]
    quarter, half = ({name for name in names if belongs(name, percent)} for percent in (25, 50))
    assert quarter < half and 200 < len(quarter) < 300 and 450 < len(half) < 550
    assert all(belongs(name, 100) for name in names) and not any(belongs(name, 0) for name in names)


def test_shares_side_by_side_are_apart() -> None:
    names = [f"test_{k}" for k in range(1000)]
    parts = [[name for name in names if belongs(name, 25, start)] for start in range(0, 100, 25)]
    assert sorted(name for part in parts for name in part) == sorted(names) and min(map(len, parts)) > 200
    assert parts[0] == [name for name in names if belongs(name, 25)]


def test_the_plugin_runs_a_share_from_where_another_ends(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('k', range(40))\ndef test_it(k): pass\n")
    chosen = sum(belongs(f"test_it[{k}]", 25, 50) for k in range(40))
    ran = pytester.runpytest_inprocess("-p", "tests.ecosystem.share", "--share=25", "--share-from=50")
    ran.assert_outcomes(passed=chosen, deselected=40 - chosen)


def test_tests_that_want_warnings_get_them(tmp_path: Path) -> None:
    for library, silenced in (("numpyro", False), ("optax", True)):
        assert ("ignore" in suites.command(suites.Choice(library, False, 25, 600, 50), tmp_path)) is silenced


def test_the_plugin_runs_a_share_and_reports_the_rest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('k', range(40))\ndef test_it(k): pass\n")
    chosen = sum(belongs(f"test_it[{k}]", 25) for k in range(40))
    ran = pytester.runpytest_inprocess("-p", "tests.ecosystem.share", "--share=25")
    ran.assert_outcomes(passed=chosen, deselected=40 - chosen)


def test_a_file_that_takes_too_long_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "command", lambda choice, path: ["sleep", "30"])
    output = suites.output_of(suites.Choice("optax", False, 100, 0.05), tmp_path / "a_test.py", tmp_path, tmp_path)
    assert output == "1 timeout: a_test.py took more than 0.05 s\n" and suites.counts_of(output) == {"timeout": 1}


def test_what_a_suite_needs_can_be_imported_beside_xlamini(tmp_path: Path) -> None:
    found = suites.variables(suites.Choice("rlax", False, 100, 600), tmp_path)
    assert found["PYTHONPATH"].split(":") == [str(ROOT), str(tmp_path)] and "count=4" in found["XLA_FLAGS"]


def test_the_plugin_is_no_part_of_a_package_called_tests(tmp_path: Path) -> None:
    choice = suites.Choice("blackjax", False, 100, 600)
    suites.install(choice, tmp_path / "packages")
    assert (tmp_path / "packages" / f"{suites.PLUGIN}.py").exists()
    assert suites.PLUGIN in suites.command(choice, tmp_path) and "." not in suites.PLUGIN


def test_the_tests_of_examples_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("examples", "tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a_test.py").touch()
    monkeypatch.setattr(suites, "unpacked", lambda library, folder: tmp_path)
    monkeypatch.setattr(suites, "install", lambda choice, folder: None)
    monkeypatch.setattr(suites, "output_of", lambda choice, path, source, packages: str(path.relative_to(source)))
    assert list(suites.outputs(suites.Choice("flax", False, 100, 600), [])) == ["tests/a_test.py"]
    assert list(suites.outputs(suites.Choice("flax", False, 100, 600), ["b_test"])) == []


def test_helpers_of_tests_are_no_tests(tmp_path: Path) -> None:
    for name in ("a_test.py", "test_b.py", "test_utils.py", "c.py"):
        (tmp_path / name).touch()
    assert [path.name for path in suites.tests_in(tmp_path)] == ["a_test.py", "test_b.py"]
