"""vmap of a library function outside of traces: the batched program is made once for a line, axes, types and flags."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.transforms.vmap_plans import plans

RNG = np.random.default_rng(0)
A, B = (RNG.normal(size=(4, 3)).astype(np.float32) for _ in range(2))
MATRICES = RNG.normal(size=(4, 3, 3)).astype(np.float32)


def hits(call: Callable[[], Any]) -> int:
    """How many of three calls from one line run the program of an earlier one."""
    before = plans.hits
    for _ in range(3):
        call()
    return plans.hits - before


@pytest.mark.parametrize(
    "mapped, operands, expected",
    [
        (lambda: xlamini.vmap(jnp.dot), (A, B), np.einsum("ij,ij->i", A, B)),
        (lambda: xlamini.vmap(jnp.dot, in_axes=(1, 1)), (A, B), np.einsum("ij,ij->j", A, B)),
        (lambda: xlamini.vmap(jnp.outer, out_axes=2), (A, B), np.einsum("ki,kj->ijk", A, B)),
        (lambda: xlamini.vmap(jnp.linalg.inv), (MATRICES,), np.linalg.inv(MATRICES)),
        (lambda: xlamini.vmap(jnp.sum, in_axes=1), (A,), A.sum(0)),
    ],
)  # fmt: skip
def test_later_calls_run_the_same_program(mapped: Any, operands: Any, expected: Any) -> None:
    found = []
    assert hits(lambda: found.append(mapped()(*operands))) == 2
    for result in found:
        np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-5)


def test_a_users_function_is_called_each_time() -> None:
    scale = [1.0]

    def scaled(x: Any) -> Any:
        return jnp.sum(x) * scale[0]

    assert hits(lambda: xlamini.vmap(scaled)(A)) == 0
    scale[0] = 3.0
    np.testing.assert_allclose(xlamini.vmap(scaled)(A), 3 * A.sum(1), rtol=1e-5)


def test_a_shared_argument_is_looked_at_each_time() -> None:
    results = [xlamini.vmap(jnp.sum, in_axes=(0, None))(MATRICES, axis) for axis in (0, 1)]
    np.testing.assert_allclose(results[0], MATRICES.sum(1), rtol=1e-5)
    np.testing.assert_allclose(results[1], MATRICES.sum(2), rtol=1e-5)


def test_types_and_flags_belong_to_the_plan() -> None:
    def call(x: Any) -> Any:
        return xlamini.vmap(jnp.sum)(x)

    assert [call(x).dtype for x in (A, A.astype(np.int8), A)] == [np.float32, np.int32, np.float32]
    with xlamini.enable_x64():
        assert call(A.astype(np.int8)).dtype == np.int64
    assert call(A.astype(np.int8)).dtype == np.int32


def test_under_other_transformations() -> None:
    squares = (MATRICES * MATRICES).sum(2)
    for _ in range(2):
        np.testing.assert_allclose(xlamini.vmap(xlamini.vmap(jnp.dot))(MATRICES, MATRICES), squares, rtol=1e-5)
        gradient = xlamini.grad(lambda a: xlamini.vmap(jnp.dot)(a, B).sum())(A)
        np.testing.assert_array_equal(gradient, B)
        np.testing.assert_allclose(xlamini.jit(xlamini.vmap(jnp.dot))(A, B), np.einsum("ij,ij->i", A, B), rtol=1e-5)


def test_sizes_are_checked_each_time() -> None:
    def call(a: Any, b: Any) -> Any:
        return xlamini.vmap(jnp.dot)(a, b)

    call(A, B)
    with pytest.raises(ValueError, match="inconsistent sizes"):
        call(A, B[:2])


def test_each_line_has_a_program_of_its_own() -> None:
    """Because messages about a program name its lines."""
    before = len(plans)
    xlamini.vmap(jnp.vdot)(A, B)
    xlamini.vmap(jnp.vdot)(A, B)
    assert len(plans) == before + 2


def test_a_program_that_is_watched_is_traced() -> None:
    with xlamini.debug_purity(True):
        assert hits(lambda: xlamini.vmap(jnp.dot)(A, B)) == 0
