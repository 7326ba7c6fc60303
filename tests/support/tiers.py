"""Test tiers: quick (the default), `--full` and `--all-rows`.

Samples are chosen by a checksum of the test's name, so every run of a tier selects the same tests.
"""
from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable

import pytest

QUICK, FULL, ALL = "quick", "full", "all"
EXPRESSIONS = {QUICK: 168, FULL: 6, ALL: 1}
"""Each tier runs one in this many expressions."""
PARAMETERS = 6
"""The quick tier runs one in this many parameters of each other test, or one in more with the mark `sample`."""
NAMED = "the command line names tests"


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="all tests, with rows and expressions in a sample of all ways")
    parser.addoption("--beyond-quick", action="store_true", help="only the tests that the quick tier leaves out")
    parser.addoption("--all-rows", action="store_true", help="all rows and expressions in all ways, not a sample")


def configure(config: pytest.Config) -> None:
    """If the command line names files or tests, all of their tests run; `tell_worker` lets workers of xdist know."""
    config.addinivalue_line("markers", "full: only with --full, or if its file is named on the command line")
    config.addinivalue_line("markers", "sample(n, full=m): the quick tier runs one in n parameters, full one in m")
    worker = getattr(config, "workerinput", None)
    if worker[NAMED] if worker else _names_tests(config):
        config.option.full = True


def tell_worker(workerinput: dict[str, object], config: pytest.Config) -> None:
    """Send a worker of xdist what its own configuration does not show: whether the command line names tests."""
    workerinput[NAMED] = _names_tests(config)


def _names_tests(config: pytest.Config) -> bool:
    return config.args_source == pytest.Config.ArgsSource.ARGS


def tier_of(config: pytest.Config) -> str:
    if config.getoption("--all-rows"):
        return ALL
    return FULL if config.getoption("--full") else QUICK


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that do not belong to the tier."""
    left_out = _left_out(items, tier_of(config))
    if config.getoption("--beyond-quick"):
        left_out |= {id(item) for item in items} - _left_out(items, QUICK)
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]


def _left_out(items: list[pytest.Item], tier: str) -> set[int]:
    """The ids of the tests outside of the tier."""
    if tier == ALL:
        return set()
    left_out = {id(item) for item in items if _is_expression(item) and _chance(item.name) % EXPRESSIONS[tier]}
    left_out |= {id(item) for item in _rows_left_out(items, tier)}
    if tier == FULL:
        return left_out | {id(item) for item in items if _chance(item.name) % _one_in_of_full(item)}
    left_out |= {id(item) for item in items if _is_full(item)}
    return left_out | {id(item) for tests in _by_function(items) for item in _parameters_left_out(tests)}


_SAMPLED_BY_NAME = {"test_rows.py", "test_expressions.py"}


def _is_full(item: pytest.Item) -> bool:
    if item.get_closest_marker("slow") or item.get_closest_marker("full"):
        return True
    sample = None if hasattr(item, "callspec") else item.get_closest_marker("sample")
    return sample is not None and _chance(item.name) % sample.args[0] != 0


def _one_in_of_full(item: pytest.Item) -> int:
    sample = item.get_closest_marker("sample")
    return sample.kwargs.get("full", 1) if sample else 1


def _by_function(items: Iterable[pytest.Item]) -> Iterable[list[pytest.Item]]:
    """The quick tests with parameters, by function; rows and expressions are sampled in ways of their own."""
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and item.path.name not in _SAMPLED_BY_NAME and not _is_full(item):
            functions[item.nodeid.partition("[")[0]].append(item)
    return functions.values()


def _parameters_left_out(tests: list[pytest.Item]) -> list[pytest.Item]:
    """All but a sample of one function's tests; its first test if the sample is empty."""
    sample = tests[0].get_closest_marker("sample")
    n = sample.args[0] if sample else PARAMETERS
    left_out = [test for test in tests if _chance(test.name) % n]
    return left_out if len(left_out) < len(tests) else tests[1:]


def _is_expression(item: pytest.Item) -> bool:
    return item.path.name == "test_expressions.py" and hasattr(item, "callspec")


def _chance(name: str) -> int:
    return zlib.crc32(name.encode())


def _rows_left_out(items: Iterable[pytest.Item], tier: str) -> list[pytest.Item]:
    """The tests of rows that this tier deselects.

    The first row of an operation has more checks than its variants, whose names are like "numpy.sum: axis". An
    operation of lax has more checks than a function composed of operations, whose name has a dot.
    """
    ways: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.path.name == "test_rows.py" and hasattr(item, "callspec"):
            ways[str(item.callspec.id)].append(item)
    firsts = {name.partition(":")[0]: name for name in reversed(ways)}.values()
    left_out = _LEFT_OUT[tier]
    return [test for name, tests in ways.items() for test in left_out(name, tests, name in firsts)]


def _left_out_of_full(name: str, tests: list[pytest.Item], first: bool) -> list[pytest.Item]:
    """First rows: values and a sample of the other checks. Variants: values, and for some one other check."""
    if first:
        of_functions = {"derivatives": 6, "batching": 12, "compositions": 36}
        return _but_one_in(of_functions if "." in name else {"batching": 2, "compositions": 3}, name, tests)
    chance = _chance(name)
    others = [test for test in tests if "values" not in test.name]
    return [test for i, test in enumerate(others) if chance % 8 or i != chance // 8 % len(others)]


def _left_out_of_quick(name: str, tests: list[pytest.Item], first: bool) -> list[pytest.Item]:
    """First rows of lax: values, derivatives, a quarter of batching. Functions and variants: some values."""
    if not first:
        return _but_one_in({"values": 16, "": 2**32}, name, tests)
    if "." in name:
        return _but_one_in({"values": 24, "derivatives": 36, "batching": 36, "": 2**32}, name, tests)
    return _but_one_in({"values": 1, "derivatives": 1, "batching": 4, "compositions": 12, "": 1}, name, tests)


def _but_one_in(counts: dict[str, int], name: str, tests: list[pytest.Item]) -> list[pytest.Item]:
    """The tests outside the sample; `counts` has n for one in n rows, by a part of the test function's name."""
    chance = _chance(name)
    found = [(test, next((n for way, n in counts.items() if way in test.name.partition("[")[0]), 1)) for test in tests]
    return [test for test, n in found if chance % n]


_LEFT_OUT: dict[str, Callable[[str, list[pytest.Item], bool], list[pytest.Item]]] = {
    FULL: _left_out_of_full,
    QUICK: _left_out_of_quick,
}
