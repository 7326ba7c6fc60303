"""A process may hold many programs, not any number: those of single operations go when there are too many."""
from __future__ import annotations

import gc
import re
import warnings

import pytest

import xlamini
import xlamini.numpy as np
from tests.support import children
from xlamini.core.caching.memo import alive
from xlamini.core.errors.frames import is_own
from xlamini.runtime.execution.program_limit import Crowd, count_maps, crowd
from xlamini.staging.compile import listeners
from xlamini.staging.run.diagnostics.eviction import evict_programs
from xlamini.staging.run.jit.cpp_function import jitted_functions
from xlamini.staging.run.programs import shared


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


@pytest.mark.slow
def test_the_oldest_programs_of_a_function_with_many_shapes_go() -> None:
    @xlamini.jit
    def once(x: xlamini.Array) -> xlamini.Array:
        traced.append(("once", x.shape))
        return x - 1

    @xlamini.jit
    def double(x: xlamini.Array) -> xlamini.Array:
        traced.append(("double", x.shape))
        return x * 2

    traced: list[tuple[str, tuple[int, ...]]] = []
    shared.programs.clear()  # those of eager transformations would go first if they were more
    held = sum(len(caches.programs) for caches in {f.caches for f in alive(jitted_functions) if not is_own(f.fun)})
    arguments = [np.ones(5001 + n) for n in range(12)]
    gc.collect()
    before = len(crowd.loaded)
    assert once(3.0) == 2
    for x in arguments:
        double(x)
    evict_programs(held + 1 + 8)
    assert len(crowd.loaded) <= before + 9
    traced.clear()
    assert once(3.0) == 2
    for x in [*arguments[-8:], *arguments[:4]]:
        assert double(x)[0] == 2
    assert traced == [("double", x.shape) for x in arguments[:4]]


MANY_KERNELS = """
import sys

import xlamini
import xlamini.numpy as np
from xlamini.runtime.execution import program_limit
from xlamini.runtime.execution.program_limit import count_maps, crowd


def sorts(x):
    return np.cumsum(np.sort(np.tanh(x) @ np.ones((x.size, x.size)))).sum()


run = getattr(xlamini, sys.argv[1])(sorts)
run(np.ones(2))
start = count_maps()
crowd.most_maps = program_limit.MOST_MAPS = start + 300
program_limit.STRIDE = 4
most = 0
for n in range(3, 63):
    assert np.isfinite(run(np.ones(n))).all()
    most = max(most, count_maps() - start)
print(most)
"""


@pytest.mark.slow
@pytest.mark.skipif(not count_maps(), reason="only Linux tells a process's memory maps")
@pytest.mark.parametrize(("transform", "most"), [("jit", 900), ("grad", 1300)])
def test_programs_go_when_memory_maps_run_short(transform: str, most: int) -> None:
    """A program of several kernels takes 20 maps, its gradient 36, so that without evictions 60 would take 1,200."""
    run = children.python("-c", MANY_KERNELS, transform)
    assert run.returncode == 0, run.stderr
    assert 300 < int(run.stdout) < most


@pytest.mark.full
def test_a_function_with_very_many_programs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "_MANY", 3)

    @xlamini.jit
    def triple(x: xlamini.Array) -> xlamini.Array:
        return x * 3

    for n in range(4):
        triple(np.ones(6001 + n))
    with warnings.catch_warnings(record=True, action="always") as caught:
        evict_programs(0)
        evict_programs(0)
    named = [str(w.message) for w in caught if "triple" in str(w.message)]  # others may be left of other tests
    (text,) = named
    assert re.search("triple has 4 programs.*Pad its arguments", text)
