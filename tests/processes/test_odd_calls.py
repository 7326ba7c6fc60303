"""Sizes and arguments that are odd, for many functions: each call gives a result or a typed error, and none kills."""

from __future__ import annotations

import sys

import pytest

from tests.support import odd_arguments, odd_calls

TOGETHER = 8
"""So many functions are called in one process: its start takes as long as the calls."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(odd_calls.CALLS), TOGETHER))
def test_the_process_lives(first: int) -> None:
    names = list(odd_calls.CALLS)[first : first + TOGETHER]
    assert odd_calls.verdict(*names).endswith(f"results of {2 * len(odd_calls.SIZES) * len(names)}"), names


@pytest.mark.slow
@pytest.mark.parametrize("face", odd_arguments.FACES)
def test_odd_arguments_give_typed_errors(face: str, pytestconfig: pytest.Config) -> None:
    count = pytestconfig.getoption("odd_calls") // len(odd_arguments.FACES)
    if not count:
        pytest.skip("minutes for each face; --odd-calls gives the number of calls")
    assert odd_arguments.wrong(face, 0, count) == []


def test_a_call_that_kills_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    deadly = """
import json, sys
for n in range(int(sys.argv[3]), 4):
    print(json.dumps(["call", f"call {n}"]), flush=True)
    if n == 2:
        sys.exit(9)
    print(json.dumps(["outcome", "a result"]))
"""
    monkeypatch.setattr(odd_arguments, "CHILD", [sys.executable, "-c", deadly])
    (found,) = odd_arguments.wrong("xlamini.numpy", 0, 4)
    assert found.startswith("call 2: WRONG: the process ended with 9 at 2")
