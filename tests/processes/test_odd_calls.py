"""Sizes that are odd, for many functions: each call gives a result or a Python error, and the process lives."""

from __future__ import annotations

import pytest

from tests.support import odd_calls


@pytest.mark.slow
@pytest.mark.parametrize("name", odd_calls.CALLS)
def test_the_process_lives(name: str) -> None:
    assert odd_calls.verdict(name).endswith(f"results of {2 * len(odd_calls.SIZES)}")
