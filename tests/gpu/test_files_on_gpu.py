"""Compiled, exported and shared on the accelerator: files that run there, and the memory of other libraries."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import dlpack, export, numpy as jnp

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def program(x: Any) -> Any:
    return jnp.linalg.cholesky(jnp.tanh(x) @ x.T + 4 * jnp.eye(3)), jnp.sort(x)


def close(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


def test_a_saved_program_is_loaded(accelerator: Any) -> None:
    compiled = xlamini.jit(program).lower(X).compile()
    loaded = xlamini.load(xlamini.load(compiled.serialize()).serialize())
    close(loaded(X), compiled(X))
    assert loaded(X)[0].devices() == {accelerator}


def test_a_program_for_the_target_that_this_is_runs_here(accelerator: Any) -> None:
    name = accelerator.device_kind.removeprefix("NVIDIA ").lower().split()[0]
    try:
        target = xlamini.target(f"gpu:{name}")
    except (ValueError, RuntimeError) as error:
        pytest.skip(str(error))
    close(xlamini.load(xlamini.jit(program).lower(X).compile(target=target).serialize())(X), program(X))


def test_an_exported_function_runs_here(accelerator: Any) -> None:
    found = export.export(xlamini.jit(program), platforms=("tpu", "cpu", "cuda"))(X)
    again = export.deserialize(found.serialize(vjp_order=1), trusted=True)
    close(again.call(X), program(X))
    gradient = xlamini.grad(lambda x: again.call(x)[0].sum())(X)
    close([gradient], [xlamini.grad(lambda x: program(x)[0].sum())(X)])


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_memory_is_shared_both_ways(accelerator: Any, library: str) -> None:
    other = pytest.importorskip(library)
    x = jnp.arange(12.0).reshape(3, 4) + 1
    theirs = other.from_dlpack(x)
    back = dlpack.from_dlpack(theirs, copy=False)
    assert back.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert back.devices() == {accelerator}
    doubled = dlpack.from_dlpack(theirs * 2)  # made on their stream, read on ours
    np.testing.assert_array_equal(np.asarray(doubled + 0), np.asarray(x) * 2)
    np.testing.assert_array_equal(np.asarray(dlpack.from_dlpack(theirs.T)), np.asarray(x).T)


def test_to_the_host(accelerator: Any) -> None:
    x = jnp.arange(12.0)
    np.testing.assert_array_equal(np.from_dlpack(xlamini.device_put(x, xlamini.devices("cpu")[0])), np.arange(12.0))
    assert dlpack.from_dlpack(np.ones(3, np.float32), device=accelerator).devices() == {accelerator}
