"""`sparse.linalg.spsolve` beside a dense solution in NumPy, with derivatives in the data and the right side."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp
from xlamini.experimental import sparse
from xlamini.experimental.sparse.linalg import spsolve

pytest.importorskip("scipy")


def system(n: int = 6) -> tuple[np.ndarray, sparse.CSR, np.ndarray]:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.5) + 3 * np.eye(n)
    dense = dense.astype(np.float32)
    return dense, sparse.CSR.fromdense(jnp.asarray(dense)), rng.normal(size=n).astype(np.float32)


@pytest.mark.full
@pytest.mark.parametrize("transform", [lambda f: f, xlamini.jit], ids=["eager", "jit"])
def test_it_solves(transform: Any) -> None:
    dense, A, b = system()
    solve = transform(lambda data, b: spsolve(data, A.indices, A.indptr, b))
    expected = np.linalg.solve(dense.astype(np.float64), b)
    np.testing.assert_allclose(solve(A.data, b), expected, rtol=2e-5)
    rows = xlamini.vmap(solve, (None, 0))(A.data, jnp.stack([b, -b]))
    np.testing.assert_allclose(rows, [expected, -expected], rtol=2e-5)


@pytest.mark.full
def test_its_derivatives_are_those_of_a_dense_solution() -> None:
    dense, A, b = system()
    loss = lambda data, b: (spsolve(data, A.indices, A.indptr, b) ** 2).sum()
    x = np.linalg.solve(dense.astype(np.float64), b)
    of_b = np.linalg.solve(dense.astype(np.float64).T, 2 * x)
    of_data = -np.outer(of_b, x)[np.nonzero(dense)]
    for grad in (xlamini.grad(loss, (0, 1)), xlamini.jit(xlamini.grad(loss, (0, 1)))):
        found = grad(A.data, b)
        np.testing.assert_allclose(found[0], of_data, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[1], of_b, rtol=1e-4, atol=1e-6)
    _, tangent = xlamini.jvp(lambda b: spsolve(A.data, A.indices, A.indptr, b), (b,), (b,))
    np.testing.assert_allclose(tangent, x, rtol=2e-5)


@pytest.mark.full
def test_float64() -> None:
    dense, A, b = system()
    with xlamini.enable_x64(True):
        x = spsolve(jnp.asarray(A.data, "float64"), A.indices, A.indptr, jnp.asarray(b, "float64"))
        assert x.dtype == "float64"
        np.testing.assert_allclose(x, np.linalg.solve(dense.astype(np.float64), b), rtol=1e-12)


@pytest.mark.full
def test_mistakes_are_named() -> None:
    _, A, b = system()
    with pytest.raises(xlamini.errors.ShapeError, match=r"indptr \(n \+ 1,\) and b \(n,\), got"):
        spsolve(A.data, A.indices, A.indptr, b[:-1])
    with pytest.raises(TypeError, match="must have one dtype, got float32 and int32"):
        spsolve(A.data, A.indices, A.indptr, jnp.arange(6))
    with pytest.raises(TypeError, match="indices and indptr must be integers, got float32"):
        spsolve(A.data, A.data, A.indptr, b)
    with pytest.raises(ValueError, match="reorder must be 0, 1, 2 or 3, got 7"):
        spsolve(A.data, A.indices, A.indptr, b, reorder=7)
