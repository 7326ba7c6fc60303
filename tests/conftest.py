"""Options of the tests; every rewrite checks its output; which tests of rows run; snapshots of texts."""
from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from xlamini import config

SNAPSHOTS = Path(__file__).parent / "snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-rows", action="store_true", help="check rows in all dtypes and batchings, not a sample")
    parser.addoption("--update-snapshots", action="store_true", help="write tests/snapshots anew, to be reviewed")


def pytest_configure() -> None:
    config.update("enable_checks", True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unless --all-rows is given, leave out most tests of variants.

    Of each function the first row is checked in every way. Of another, "name: variant", its values are, and one thing
    more, which its name decides: so all ways are tried with some variants.
    """
    if config.getoption("--all-rows"):
        return
    ways: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.path.name == "test_rows.py" and hasattr(item, "callspec"):
            ways[str(item.callspec.id)].append(item)
    firsts = {name.partition(":")[0]: name for name in reversed(ways)}.values()
    left_out = {id(item) for name in ways.keys() - set(firsts) for item in _beyond_two(name, ways[name])}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]


def _beyond_two(name: str, tests: list[pytest.Item]) -> list[pytest.Item]:
    """All tests of a row but that of its values and one other."""
    others = [test for test in tests if "values" not in test.name]
    return [test for i, test in enumerate(others) if i != zlib.crc32(name.encode()) % len(others)]


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/snapshots/NAME.txt, or write it there."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        if request.config.getoption("--update-snapshots"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text + "\n")
        assert path.exists(), f"no snapshot {path.name}; make it with pytest --update-snapshots"
        assert text + "\n" == path.read_text(), "if the new text is right: pytest --update-snapshots"

    return compare
