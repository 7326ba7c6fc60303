"""Files that somebody changed under a right checksum are refused by a typed error, or give a result."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import xlamini
from tests.support import mutations
from tests.support.mutations import HEADERS, MODULES
from xlamini.errors import LoadError
from xlamini.staging.aot import compiled_file

pytestmark = pytest.mark.sample(3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("what", [HEADERS, MODULES])
def test_mutations(what: str, seed: int, pytestconfig: pytest.Config) -> None:
    count = max(100, pytestconfig.getoption("mutations") // 8)
    found = mutations.counted(what, seed, count)
    assert found.keys() <= {"refused", "refused when called", "a result"}, found
    assert sum(found.values()) == count
    assert found["refused"] > count // 4


@pytest.mark.parametrize("number", range(30))
def test_a_few_headers(number: int) -> None:
    assert not mutations.outcome(HEADERS, 99, number).startswith("WRONG")


def test_a_mutation_that_kills_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    deadly = "import sys\nfor n in range(int(sys.argv[3]), 4): print('\"refused\"') if n != 2 else sys.exit(9)"
    monkeypatch.setattr(mutations, "CHILD", [sys.executable, "-c", deadly])
    found = mutations.counted(HEADERS, 0, 4)
    assert found == {"refused": 3, "WRONG: the process ended with 9 (at headers 0 2)": 1}


def test_every_part_of_a_header_is_mutated() -> None:
    header = {"a": [1, {"b": 2}]}
    assert list(mutations.places(header)) == [("a",), ("a", 0), ("a", 1), ("a", 1, "b")]


def test_a_compiled_program_with_other_dtypes_than_its_signature_is_refused() -> None:
    blob = xlamini.jit(lambda x: x + 1).lower(np.ones(3, np.float32)).compile().serialize()
    header, body = compiled_file.FILE.unpacked(blob)
    header["program"]["in_avals"][0][0] = "int32"
    with pytest.raises(LoadError, match="describes another program"):
        xlamini.load(compiled_file.FILE.packed(header, body))
