"""Look-ups in the compile cache: names of files begin with a sketch, so that a program that is not there has no key."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import cache, config, numpy as jnp
from xlamini.core.caching.digest import sketch
from xlamini.core.program.jaxpr import close_over

X = np.arange(3, dtype=np.float32)


def step(x: Any) -> Any:
    return jnp.sum(jnp.tanh(x) * 3)


def run_fresh(fun: Any) -> Any:
    return np.asarray(xlamini.jit(lambda x: fun(x))(X))


def store_nothing() -> None:
    config.update("jax_persistent_cache_min_compile_time_secs", 1000)


def hits_and_misses() -> tuple[int, int]:
    return cache.stats().hits, cache.stats().misses


def test_a_program_that_is_not_there_has_no_digest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes milliseconds for a large program, and is asked for where a file has the same sketch, or to store one."""
    run_fresh(step)
    monkeypatch.setattr("xlamini.staging.compile.compile_cache.digest", None)
    store_nothing()
    np.testing.assert_array_equal(run_fresh(lambda x: x * 3), X * 3)
    assert hits_and_misses() == (0, 2)


def test_programs_of_one_sketch_are_told_apart(folder: Path) -> None:
    assert run_fresh(lambda x: jnp.sum(jnp.sin(x) * 3)) != run_fresh(step)
    assert hits_and_misses() == (0, 2)
    names = [path.name for path in folder.iterdir()]
    assert len(names) == 2 and len({name[:16] for name in names}) == 1


def test_a_file_that_came_later_is_found(folder: Path) -> None:
    run_fresh(step)
    (path,) = folder.iterdir()
    path.rename(aside := folder.parent / "aside")
    store_nothing()
    run_fresh(step)
    assert hits_and_misses() == (0, 2)
    aside.rename(path)
    run_fresh(step)
    assert hits_and_misses() == (1, 2)


def test_a_sketch_is_of_types_and_the_number_of_equations() -> None:
    def of(fun: Any, x: Any) -> str:
        return sketch(close_over(xlamini.make_jaxpr(fun)(x).jaxpr))

    assert of(jnp.sin, X) == of(jnp.cos, X) != of(jnp.sin, X[:2])
    assert of(jnp.sin, X) != of(lambda x: jnp.sin(jnp.sin(x)), X)
    assert of(jnp.sin, X) != of(jnp.sin, X.astype(np.float16))
