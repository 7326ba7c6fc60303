"""Which tests run: the quick tier, `--full`, or `--all-rows`."""
from __future__ import annotations

import zlib
from collections import defaultdict

import pytest


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="all tests, with rows and expressions in a sample of all ways")
    parser.addoption("--all-rows", action="store_true", help="all rows and expressions in all ways, not a sample")


def configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: only with --full, or where its file is named")


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unless --all-rows is given, leave out some of the tests of rows and expressions.

    Names decide, so every run has the same ones. Of lax the values and derivatives of every operation's first row are
    checked, batching for one in two, compositions for one in three; of what is made of them the values, and of some
    derivatives, batching and compositions too. Of a variant, which has a name like "numpy.sum: axis", the values are
    checked, and of some one thing more. Of the expressions one in six is tried.
    """
    if config.getoption("--all-rows"):
        return
    ways: dict[str, list[pytest.Item]] = defaultdict(list)
    left_out = set()
    for item in items:
        if item.path.name == "test_rows.py" and hasattr(item, "callspec"):
            ways[str(item.callspec.id)].append(item)
        elif item.path.name == "test_expressions.py" and zlib.crc32(item.name.encode()) % 6:
            left_out.add(id(item))
    firsts = {name.partition(":")[0]: name for name in reversed(ways)}.values()
    left_out |= {id(test) for name, tests in ways.items() for test in _left_out(name, tests, name in firsts)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]


def _left_out(name: str, tests: list[pytest.Item], first: bool) -> list[pytest.Item]:
    chance = zlib.crc32(name.encode())
    if first:
        of_composites = {"derivatives": 6, "batching": 12, "compositions": 36}
        rest = of_composites if "." in name else {"batching": 2, "compositions": 3}
        return [test for test in tests if any(chance % rest[way] for way in rest if way in test.name)]
    others = [test for test in tests if "values" not in test.name]
    return [test for i, test in enumerate(others) if chance % 8 or i != chance // 8 % len(others)]
