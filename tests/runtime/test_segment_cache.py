"""Deep programs on disk: each kind of segment is a program of its own there."""
from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.interpreters.test_segments import (
    DEPTH,
    X,
    assert_close,
    params,
    runs as runs,
    short_programs_count as short_programs_count,
    update,
)
from xlamini import cache, config


def kinds(program: Any) -> int:
    """How many executables a program in segments has."""
    return len({id(step.executable) for step in program.steps})


@pytest.mark.full
def test_segments_are_stored_one_by_one(runs: list[Any], folder: Path) -> None:
    args = params(DEPTH), X
    fun = xlamini.jit(lambda *xs: update(*xs))
    assert cache.explain(fun, *args) == "<lambda> runs in segments: 0 of 5 are in the cache"
    wanted = fun(*args)
    assert cache.stats().stored == len(list(folder.glob("*.xlamini"))) == kinds(runs[0])
    first, *listed = cache.explain(fun, *args).splitlines()
    assert first == "<lambda> runs in segments: 5 of 5 are in the cache" and len(listed) == 5
    xlamini.clear_caches()
    assert_close(wanted, xlamini.jit(lambda *xs: update(*xs))(*args))
    assert (cache.stats().hits, cache.stats().misses) == (kinds(runs[0]), kinds(runs[0]))


def test_a_segment_that_calls_python_is_said_never_to_be_kept(folder: Path) -> None:
    def logged(*args: Any) -> Any:
        new, loss = update(*args)
        return new, xlamini.pure_callback(np.asarray, xlamini.ShapeDtypeStruct((), np.float32), loss)

    fun = xlamini.jit(logged)
    fun(params(DEPTH), X)
    first, *listed = cache.explain(fun, params(DEPTH), X).splitlines()
    assert first == "logged runs in segments: 4 of 5 are in the cache; never kept, as they call Python functions: 1"
    assert len(listed) == 4


@pytest.mark.full
def test_a_segment_is_stored_that_takes_its_share_of_the_least_time(
    runs: list[Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that takes 1 second is not, where 4 are asked for, but each of five segments that take as long."""
    monkeypatch.setattr("xlamini.staging.compile.compile_cache.time.perf_counter", itertools.count().__next__)
    config.update("persistent_cache_min_compile_time_secs", 4)
    xlamini.jit(update, outline=False)(params(DEPTH), X)
    assert cache.stats().stored == 0
    xlamini.jit(update)(params(DEPTH), X)
    assert cache.stats().stored == kinds(runs[0]) == 5
