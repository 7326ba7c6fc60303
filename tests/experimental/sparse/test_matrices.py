"""COO, CSR and CSC: conversions, products and derivatives, compared with SciPy and with dense matrices."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import xlamini
import xlamini.numpy as jnp
from xlamini.experimental import sparse
from xlamini.experimental.sparse import BCOO, COO, CSC, CSR

pytestmark = pytest.mark.sample(8)

M = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
V = np.array([1, 2, 3, 4], np.float32)
every_format = pytest.mark.parametrize("kind", [COO, CSR, CSC])


@every_format
def test_as_scipy(kind: Any) -> None:
    mat, reference = kind.fromdense(M), getattr(scipy.sparse, f"{kind.__name__.lower()}_matrix")(M)
    for name in kind.buffers:
        np.testing.assert_array_equal(getattr(mat, name), getattr(reference, name))
    np.testing.assert_array_equal(mat.todense(), M)
    assert repr(mat) == f"{kind.__name__}(float32[3, 4], nse=4)"
    np.testing.assert_array_equal(kind.fromdense(M, nse=6).todense(), M)


@pytest.mark.full
@every_format
def test_operations(kind: Any) -> None:
    mat = kind.fromdense(M)
    for found, expected in ((mat @ V, M @ V), (V[:3] @ mat, V[:3] @ M), (mat.sum(), M.sum())):
        np.testing.assert_array_equal(found, expected)
    for found, expected in ((mat.T, M.T), (mat + mat, 2 * M), (mat * V, M * V), (mat @ mat.T, M @ M.T), (mat[0], M[0])):
        assert isinstance(found, BCOO)
        np.testing.assert_array_equal(found.todense(), expected)
    assert isinstance(-mat * 2, kind)
    np.testing.assert_array_equal((-mat * 2).todense(), -2 * M)


@every_format
def test_transformations(kind: Any) -> None:
    mat = kind.fromdense(M)
    gradient = sparse.grad(xlamini.jit(lambda m: ((m @ V) ** 2).sum()))(mat)
    assert isinstance(gradient, kind)
    expected = xlamini.grad(lambda m: ((m @ V) ** 2).sum())(jnp.asarray(M))
    np.testing.assert_allclose(gradient.todense(), expected * (M != 0), rtol=1e-6)
    stacked = xlamini.tree.map(lambda x: jnp.stack([x, x]), mat)
    np.testing.assert_array_equal(xlamini.vmap(lambda m: m @ V)(stacked), [M @ V] * 2)
    np.testing.assert_array_equal(sparse.eye(3, 4, k=1, sparse_format=kind.__name__.lower()).todense(), np.eye(3, 4, 1))


def test_functions() -> None:
    for kind in ("coo", "csr"):
        fromdense, todense, matvec, matmat = (
            getattr(sparse, f"{kind}_{name}") for name in ("fromdense", "todense", "matvec", "matmat")
        )
        mat = fromdense(M)
        np.testing.assert_array_equal(todense(mat), M)
        np.testing.assert_array_equal(matvec(mat, V), M @ V)
        np.testing.assert_array_equal(matvec(mat, V[:3], transpose=True), M.T @ V[:3])
        np.testing.assert_array_equal(matmat(mat, M.T), M @ M.T)
        np.testing.assert_array_equal(matmat(mat, M, transpose=True), M.T @ M)


@pytest.mark.parametrize("kind", [COO, CSR, CSC])
def test_jacobians(kind: Any) -> None:
    found = sparse.jacrev(lambda m: m @ V)(kind.fromdense(M))
    expected = xlamini.jacrev(lambda m: m @ V)(jnp.asarray(M)) * (M != 0)
    assert isinstance(found, kind)
    np.testing.assert_array_equal(found.todense(), expected)


@pytest.mark.parametrize(
    ("kind", "lengths"), [(COO, (2, 2, 3)), (CSR, (2, 2, 3)), (CSC, (2, 2, 4)), (CSR, (3, 2, 4))], ids=str
)
def test_buffers_that_do_not_fit(kind: Any, lengths: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not fit an array of shape"):
        kind([jnp.zeros(n, "int32") for n in lengths], shape=(3, 4))
    with pytest.raises(ValueError, match="do not fit an array of shape"):
        kind([jnp.zeros(2, "int32")] * 3, shape=(3, 4, 5))
