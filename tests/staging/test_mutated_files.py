"""Files that somebody changed under a right checksum are refused by a typed error, or give a result."""

from __future__ import annotations

import pytest

from tests.support import mutations

pytestmark = pytest.mark.sample(3)


@pytest.mark.sample(60)
@pytest.mark.parametrize("seed", range(60))
def test_headers(seed: int, pytestconfig: pytest.Config) -> None:
    count = max(50, pytestconfig.getoption("mutations") // 60)
    found = mutations.headers(count, seed)
    assert sum(found.values()) == count
    assert found["refused"] > count // 3


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(20))
def test_modules(seed: int, pytestconfig: pytest.Config) -> None:
    count = max(4, pytestconfig.getoption("mutations") // 1000)
    assert sum(mutations.modules(count, seed).values()) == count


def test_every_part_of_a_header_is_mutated() -> None:
    header = {"a": [1, {"b": 2}]}
    assert list(mutations.places(header)) == [("a",), ("a", 0), ("a", 1), ("a", 1, "b")]
