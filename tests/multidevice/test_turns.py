"""Programs with collectives, many of them on their way at once: none waits for ever, all are right."""
from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import NamedSharding, P, jit, lax, make_mesh, numpy as jnp, shard_map

MESH = make_mesh((8,), ("d",), axis_types=xlamini.sharding.AxisType.Auto)
RING = [(k, (k + 1) % 8) for k in range(8)]
ROWS, WHOLE = NamedSharding(MESH, P("d")), NamedSharding(MESH, P())


def runs_alone(a: Any, b: Any) -> Any:
    for _ in range(4):
        a = jnp.tanh(lax.all_to_all(a, "d", 0, 0, tiled=True))
    return a


def side_by_side(a: Any, b: Any) -> Any:
    return sum(lax.all_to_all(a * i, "d", 0, 0, tiled=True) @ b for i in range(6))


def of_all_kinds(a: Any, b: Any) -> Any:
    total = a
    for i in range(3):
        summed, passed = lax.psum(a @ b, "d"), lax.ppermute(a + i, "d", RING)
        total = total + lax.all_to_all(summed, "d", 0, 0, tiled=True) @ b + passed
    return total


PROGRAMS: dict[str, Callable[..., Any]] = {
    program.__name__: shard_map(
        program, mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"), check_vma=False
    )
    for program in (runs_alone, side_by_side, of_all_kinds)
}
A, B = np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32) / 8, np.eye(16, dtype=np.float32) / 2


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_calls_at_once(name: str) -> None:
    program = jit(PROGRAMS[name])
    a, b = xlamini.device_put(A, ROWS), xlamini.device_put(B, WHOLE)
    first = np.asarray(program(a, b))
    for out in [program(a, b) for _ in range(150)][::50]:
        np.testing.assert_array_equal(out, first)


@pytest.mark.full
def test_several_threads() -> None:
    program, found = jit(PROGRAMS["side_by_side"]), []

    def call() -> None:
        a, b = xlamini.device_put(A, ROWS), xlamini.device_put(B, WHOLE)
        found.extend([program(a, b) for _ in range(20)])

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 80
    for out in found[::20]:
        np.testing.assert_array_equal(out, found[0])


@pytest.mark.full
def test_calls_are_found_again_by_types_and_places() -> None:
    traced = []

    @jit
    def centred(tree: Any, *, scale: Any) -> Any:
        traced.append(tree["x"].aval)
        return {"y": (tree["x"] - tree["x"].mean()) * scale}

    scale = xlamini.device_put(jnp.float32(2), WHOLE)
    for value in (A, A + 1, A * 3):
        out = centred({"x": xlamini.device_put(value, ROWS)}, scale=scale)
        np.testing.assert_allclose(out["y"], (value - value.mean()) * 2, atol=1e-5)
    narrow = A[:8].astype(np.float16)
    np.testing.assert_allclose(
        centred({"x": xlamini.device_put(narrow, ROWS)}, scale=scale)["y"], (narrow - narrow.mean()) * 2, atol=1e-2
    )
    whole = centred({"x": xlamini.device_put(A, WHOLE)}, scale=2.0)
    np.testing.assert_allclose(whole["y"], (A - A.mean()) * 2, atol=1e-5)
    assert len(traced) == 3


def test_flags_count() -> None:
    doubled = jit(lambda x: (x.sum() * 2).astype(float))
    x = xlamini.device_put(A, ROWS)
    assert doubled(x).dtype == np.float32
    with xlamini.enable_x64(True):
        assert doubled(x).dtype == np.float64
    assert doubled(x).dtype == np.float32


def test_a_deleted_argument_is_named() -> None:
    centred = jit(lambda x: x - x.mean())
    x = xlamini.device_put(A, ROWS)
    for _ in range(3):
        centred(x)
    x.delete()
    with pytest.raises(RuntimeError, match=re.escape("the argument 'x'")):
        centred(x)


def test_donated_arguments() -> None:
    centred = jit(lambda x: x - x.mean(), donate_argnums=0)
    x, expected = xlamini.device_put(A, ROWS), A
    for _ in range(5):
        before, x, expected = x, centred(x), expected - expected.mean()
        assert before.is_deleted()
    np.testing.assert_allclose(x, expected, atol=1e-6)


def test_inside_other_programs() -> None:
    total = jit(lambda x: x.sum())
    x = xlamini.device_put(A, ROWS)
    total(x)
    total(x)
    np.testing.assert_allclose(jit(lambda x: total(x) * 2)(x), A.sum() * 2, rtol=1e-4)
    np.testing.assert_allclose(xlamini.grad(lambda x: total(x) ** 2)(x), np.full_like(A, 2 * A.sum()), rtol=1e-4)
