"""A pytest plugin that runs a share of the tests: `-p tests.ecosystem.share --share 25 --share-from 50`.

Which tests are run depends on their names only, so that xlamini and JAX run the same ones. Every test has a number from
0 to 99; a share of 25 from 50 has those of 50 to 74. Shares that lie side by side have no test in common.
"""
from __future__ import annotations

import zlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=int, default=100, help="how many tests of a hundred are run")
    parser.addoption("--share-from", type=int, default=0, help="how many of a hundred are passed over before those")


def belongs(name: str, percent: int, start: int = 0) -> bool:
    """Whether a test is in the share. A larger share with the same start has all tests of a smaller one."""
    return start <= zlib.crc32(name.encode()) % 100 < start + percent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    percent, start = (int(config.getoption(option, 0) or 0) for option in ("--share", "--share-from"))
    left_out = [item for item in items if not belongs(item.name, percent, start)]
    items[:] = [item for item in items if belongs(item.name, percent, start)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
