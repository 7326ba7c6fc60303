"""Options of the tests; every rewrite checks its output; snapshots of texts."""
from __future__ import annotations

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
