"""A process may hold many programs, not any number: those of single operations go when there are too many."""
from __future__ import annotations

import gc

import pytest

import xlamini
import xlamini.numpy as np
from xlamini.runtime.program_limit import Crowd, crowd


@pytest.fixture
def small_room(monkeypatch: pytest.MonkeyPatch) -> Crowd:
    gc.collect()
    monkeypatch.setattr(crowd, "room", 20)
    monkeypatch.setattr(crowd, "limit", len(crowd.loaded) + 20)
    return crowd


@pytest.mark.slow
def test_programs_of_single_operations_go_when_there_are_many(small_room: Crowd) -> None:
    start = len(small_room.loaded)
    for n in range(100):
        assert np.sin(np.ones(3001 + n)).shape == (3001 + n,)
    assert len(small_room.loaded) <= start + 21


@pytest.mark.full
def test_a_users_program_stays(small_room: Crowd) -> None:
    traces = []

    @xlamini.jit
    def double(x: xlamini.Array) -> xlamini.Array:
        traces.append(x)
        return x * 2

    assert double(3.0) == 6
    for n in range(50):
        np.cos(np.ones(4001 + n))
    assert double(4.0) == 8
    assert len(traces) == 1


@pytest.mark.full
def test_programs_of_functions_that_are_gone_do_not_count(small_room: Crowd) -> None:
    start = len(small_room.loaded)
    for n in range(5):
        xlamini.jit(lambda x, n=n: x + n)(1.0)
    gc.collect()
    assert len(small_room.loaded) == start
