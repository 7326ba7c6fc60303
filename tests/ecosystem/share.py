"""A pytest plugin that runs a share of the tests: `-p tests.ecosystem.share --share 25`.

Which tests are run depends on their names only, so that xlamini and JAX run the same ones.
"""
from __future__ import annotations

import zlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=int, default=100, help="how many tests of a hundred are run")


def belongs(name: str, percent: int) -> bool:
    """Whether a test is in the share. A larger share has all tests of a smaller one."""
    return zlib.crc32(name.encode()) % 100 < percent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    percent = int(config.getoption("--share", 100) or 0)
    left_out = [item for item in items if not belongs(item.name, percent)]
    items[:] = [item for item in items if belongs(item.name, percent)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
