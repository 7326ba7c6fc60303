"""Programs on disk keyed by their modules: an edit of the library does not empty the cache, and meshes may use it."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, cache, config, lax, make_mesh, numpy as jnp
from xlamini.core.flags.compile_flags import optimization_level
from xlamini.runtime.files import disk_cache, disk_key
from xlamini.sharding import Mesh, NamedSharding
from xlamini.staging.run import programs

FLAGS = ("compilation_cache_dir", "compilation_cache_key", "raise_persistent_cache_errors")
X = np.arange(8, dtype=np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, in a process that has counted and jitted nothing yet."""
    programs.unshare()
    before = {name: config.read(name) for name in FLAGS}
    monkeypatch.setattr(disk_cache, "_memory", disk_cache._Memory())
    for name, value in zip(FLAGS, (str(tmp_path / "programs"), "module", True), strict=True):
        config.update(name, value)
    yield tmp_path / "programs"
    for name, value in before.items():
        config.update(name, value)


def hits_and_misses() -> tuple[int, int]:
    return cache.stats().hits, cache.stats().misses


def step(x: Any) -> Any:
    return jnp.sum(jnp.tanh(x) * 3)


def fresh(fun: Any, *args: Any, **options: Any) -> float:
    """What a function that is jitted anew computes."""
    return float(xlamini.jit(lambda *xs: fun(*xs), **options)(*args))


def test_an_edit_of_the_library_leaves_programs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fresh(step, X)
    monkeypatch.setattr(disk_key, "source", lambda: "another")
    assert fresh(step, X) == expected and hits_and_misses() == (1, 1)


def test_names_do_not_count() -> None:
    def one(x: Any) -> Any:
        return xlamini.jit(lambda y: step(y) * 2)(x)

    def another(x: Any) -> Any:
        @xlamini.jit
        def inner(y: Any) -> Any:
            return step(y) * 2

        return inner(x)

    assert float(xlamini.jit(one)(X)) == float(xlamini.jit(another)(X))
    assert hits_and_misses() == (1, 1)


def test_only_names_of_functions_are_left_out() -> None:
    module = (
        'module @jit_f {\n  func.func public @main() {\n    call @"<lambda>"()\n    custom_call @kernel() {a = @g}\n'
        '  func.func private @"<lambda>"() {\n'
    )
    assert disk_key.without_names(module) == (
        "module @0 {\n  func.func public @1() {\n    call @2()\n    custom_call @kernel() {a = @g}\n"
        "  func.func private @2() {\n"
    )


OTHERS = {
    "a constant": lambda: fresh(lambda x: jnp.sum(jnp.tanh(x) * 4), X),
    "a type": lambda: fresh(step, X[:5]),
    "an option of XLA": lambda: fresh(step, X, compiler_options={"xla_backend_optimization_level": 1}),
    "an operation": lambda: fresh(lambda x: jnp.sum(jnp.sin(x) * 3), X),
    "a donated argument": lambda: xlamini.jit(lambda x: jnp.tanh(x) * 3, donate_argnums=0)(jnp.ones(8)),
    "another device": lambda: fresh(step, xlamini.device_put(X, xlamini.devices()[1])),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_program(other: str) -> None:
    fresh(step, X)
    xlamini.jit(lambda x: jnp.tanh(x) * 3)(jnp.ones(8))
    before = cache.stats()
    OTHERS[other]()
    assert cache.stats().misses == before.misses + 1


def test_options_of_xla_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(step, X)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    fresh(step, X)
    assert hits_and_misses() == (0, 2)


def over_a_mesh(mesh: Mesh) -> Any:
    """The sum of squares over a mesh, which takes a collective, and where another result lies."""
    x = xlamini.device_put(X, NamedSharding(mesh, P("x")))
    total = xlamini.shard_map(lambda a: lax.psum(jnp.sum(a * a), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    doubled = xlamini.jit(lambda a: a * 2)(x)
    return float(xlamini.jit(total)(x)), np.asarray(doubled).tolist(), doubled.sharding, len(doubled.addressable_shards)


@pytest.mark.full
def test_programs_over_a_mesh(folder: Path) -> None:
    mesh = make_mesh((8,), ("x",), axis_types=xlamini.sharding.AxisType.Auto)
    first = over_a_mesh(mesh)
    misses = cache.stats().misses
    assert first[0] == 140 and first[3] == 8 and misses > 0
    programs.unshare()
    xlamini.clear_caches()
    assert over_a_mesh(mesh) == first
    assert cache.stats().misses == misses and cache.stats().hits >= 2


def test_devices_in_another_order() -> None:
    devices = np.array(xlamini.devices())
    first = over_a_mesh(Mesh(devices, ("x",)))
    misses = cache.stats().misses
    second = over_a_mesh(Mesh(devices[::-1], ("x",)))
    assert first[:2] == second[:2] and first[2] != second[2] and cache.stats().misses > misses


def test_programs_that_call_python_are_not_stored(folder: Path) -> None:
    def calls(x: Any) -> Any:
        return xlamini.pure_callback(np.sin, xlamini.ShapeDtypeStruct(x.shape, x.dtype), x)

    xlamini.jit(calls)(X)
    assert not folder.exists() and hits_and_misses() == (0, 0)


def test_explain() -> None:
    fresh(step, X)
    assert cache.explain(step, X).startswith("step is in the cache")
    assert "the types of the arguments: float32[2]; there float32[8]" in cache.explain(step, X[:2])


def test_explain_reads_options_of_flags(optimized: None) -> None:
    fresh(step, X)
    with optimization_level("O1"):
        assert "compiler options: optimization_level='O1'; there none" in cache.explain(step, X)
        fresh(step, X)
        assert cache.explain(step, X).startswith("step is in the cache")
