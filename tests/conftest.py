"""Test configuration: tiers, the compile cache of the tests, eight CPU devices, snapshots of texts."""
from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import xlamini
from tests.support import tiers
from tests.support.paths import ROOT, SNAPSHOTS
from xlamini.core.flags.compile_flags import disable_most_optimizations
from xlamini.runtime.files import disk_cache

CACHE = ROOT / ".cache" / "xlamini"
CACHE_FLAGS = ("compilation_cache_dir", "compilation_cache_key", "raise_persistent_cache_errors")
ONE_MODULE = "--xla_cpu_parallel_codegen_split_count=1"
"""A flag of XLA's: LLVM compiles a small program in one piece in less CPU time than in many."""
PROGRAMS = 100_000
"""The limit of entries in the cache of the tests; the full tier compiles about 20,000 programs."""

pytest_plugins = ["tests.support.cpu_seconds"]

xlamini.config.update("num_cpu_devices", 8)  # before the first test asks for a device


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_options(parser)
    parser.addoption("--cold", action="store_true", help="compile every program: disable the cache in .cache")
    parser.addoption("--mutations", type=int, default=0, help="at least so many mutated files in test_mutated_files.py")
    parser.addoption("--odd-calls", type=int, default=0, help="at least so many calls with odd arguments")
    parser.addoption("--update-snapshots", action="store_true", help="write tests/snapshots, for review")


def pytest_configure(config: pytest.Config) -> None:
    tiers.configure(config)
    xlamini.config.update("enable_checks", True)
    if not config.getoption("--all-rows"):
        xlamini.config.update("disable_most_optimizations", True)
        os.environ["XLAMINI_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # for the processes that tests start
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ONE_MODULE}".strip()
    if config.getoption("--cold") or config.getoption("--all-rows"):
        xlamini.config.update("compilation_cache_dir", None)
    else:
        _enable_cache()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    tiers.tell_worker(node.workerinput, node.config)


def _enable_cache() -> None:
    """Cache compiled programs by StableHLO text: an edit recompiles only what it changes, and workers share entries."""
    disk_cache.MOST_ENTRIES = PROGRAMS
    for name, value in zip(CACHE_FLAGS, (str(CACHE), "module", True), strict=True):
        xlamini.config.update(name, value)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The millions of objects of the collected tests live to the end: the garbage collector need not visit them."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.select(config, items)


@pytest.fixture
def no_cache() -> Iterator[None]:
    """The compile cache is off: nothing is read from disk, and no program is lowered for its key."""
    before = {name: xlamini.config.read(name) for name in CACHE_FLAGS}
    for name, value in zip(CACHE_FLAGS, (None, "source", False), strict=True):
        xlamini.config.update(name, value)
    yield
    for name, value in before.items():
        xlamini.config.update(name, value)


@pytest.fixture
def optimized() -> Iterator[None]:
    """Programs are compiled as users' are; elsewhere without most optimizations, in less than half the time."""
    with disable_most_optimizations(False):
        yield


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
