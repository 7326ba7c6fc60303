"""Options of the tests; every rewrite checks its output; compiled programs stay on disk; snapshots of texts."""
from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import xlamini
from tests.support import tiers
from tests.support.paths import ROOT, SNAPSHOTS
from xlamini.runtime.files import disk_cache

CACHE = ROOT / ".cache" / "xlamini"
CACHE_FLAGS = ("compilation_cache_dir", "compilation_cache_key", "raise_persistent_cache_errors")
PROGRAMS = 100_000
"""Programs that the cache of the tests holds; the full tier compiles a third as many."""

pytest_plugins = ["tests.support.cpu_seconds"]

xlamini.config.update("num_cpu_devices", 8)  # before the first test asks for a device


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_options(parser)
    parser.addoption("--cold", action="store_true", help="neither read nor write the compiled programs in .cache")
    parser.addoption("--update-snapshots", action="store_true", help="write tests/snapshots anew, to be reviewed")


def pytest_configure(config: pytest.Config) -> None:
    tiers.configure(config)
    xlamini.config.update("enable_checks", True)
    if not (config.getoption("--cold") or config.getoption("--all-rows")):
        _keep_programs()


def _keep_programs() -> None:
    """A program whose module an edit leaves as it is, is not compiled again; workers share the folder."""
    disk_cache.MOST_ENTRIES = PROGRAMS
    for name, value in zip(CACHE_FLAGS, (str(CACHE), "module", True), strict=True):
        xlamini.config.update(name, value)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.select(config, items)


@pytest.fixture
def no_cache() -> Iterator[None]:
    """The flags of the cache as a user finds them: no program comes from disk, nor are all lowered for their key."""
    before = {name: xlamini.config.read(name) for name in CACHE_FLAGS}
    for name, value in zip(CACHE_FLAGS, (None, "source", False), strict=True):
        xlamini.config.update(name, value)
    yield
    for name, value in before.items():
        xlamini.config.update(name, value)


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
