"""Derivatives in sparse arrays, compared with those in the dense array at the same indices."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.experimental import sparse
from xlamini.experimental.sparse import BCOO, BCSR

pytestmark = pytest.mark.sample(8)

M = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
V = np.array([1, 2, 3, 4], np.float32)


def loss(m: Any, v: Any) -> Any:
    return jnp.sin(m @ v).sum()


EXPECTED = xlamini.grad(loss, argnums=(0, 1))(jnp.asarray(M), V)
PATTERN = M != 0


@pytest.mark.full
@pytest.mark.parametrize("kind", [BCOO, BCSR])
def test_grad(kind: Any) -> None:
    mat = kind.fromdense(M)
    found, of_v = sparse.grad(loss, argnums=(0, 1))(mat, V)
    assert isinstance(found, kind)
    np.testing.assert_allclose(found.todense(), EXPECTED[0] * PATTERN, rtol=1e-5)
    np.testing.assert_allclose(of_v, EXPECTED[1], rtol=1e-5)
    value, only = sparse.value_and_grad(loss)(mat, V)
    np.testing.assert_allclose(value, loss(jnp.asarray(M), V), rtol=1e-5)
    np.testing.assert_allclose(only.data, found.data)


def test_grad_of_containers_and_with_auxiliary_data() -> None:
    def f(params: Any) -> Any:
        return loss(params["m"], params["v"]), params["m"].sum(0)

    gradient, aux = sparse.grad(f, has_aux=True)({"m": BCOO.fromdense(M), "v": V})
    np.testing.assert_allclose(gradient["m"].todense(), EXPECTED[0] * PATTERN, rtol=1e-5)
    np.testing.assert_allclose(gradient["v"], EXPECTED[1], rtol=1e-5)
    np.testing.assert_array_equal(aux.todense(), M.sum(0))


@pytest.mark.full
@pytest.mark.parametrize("transformation", [sparse.jacfwd, sparse.jacrev, sparse.jacobian])
def test_jacobians(transformation: Any) -> None:
    def f(m: Any, v: Any) -> Any:
        return {"out": jnp.sin(m @ v)}

    blocks = transformation(f, argnums=(0, 1))(BCOO.fromdense(M), V)["out"]
    assert repr(blocks[0]) == "BCOO(float32[3, 3, 4], nse=4, n_batch=1)"
    expected = xlamini.jacrev(f, argnums=(0, 1))(jnp.asarray(M), V)["out"]
    np.testing.assert_allclose(blocks[0].todense(), expected[0] * PATTERN, rtol=1e-5)
    np.testing.assert_allclose(blocks[1], expected[1], rtol=1e-5)
    (of_m, of_v), _ = transformation(lambda m, v: [f(m, v)["out"], v], argnums=(0, 1))(BCOO.fromdense(M), V)
    np.testing.assert_allclose(of_m.data, blocks[0].data, rtol=1e-5)
    np.testing.assert_allclose(of_v, blocks[1], rtol=1e-5)


def test_of_dense_arrays_alone() -> None:
    np.testing.assert_allclose(sparse.grad(lambda v: (v * v).sum())(V), 2 * V)


@pytest.mark.full
def test_second_derivatives() -> None:
    mat = BCOO.fromdense(M)
    found = xlamini.hessian(lambda d: loss(mat.with_data(d), V))(mat.data)
    rows, columns = np.nonzero(M)
    expected = xlamini.hessian(loss)(jnp.asarray(M), V)[rows, columns][:, rows, columns]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_descent_recovers_a_matrix() -> None:
    """A fit of the elements of a sparse matrix to its products."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 20)).astype(np.float32)
    y = M @ x

    @xlamini.jit
    def step(m: BCOO) -> BCOO:
        gradient = sparse.grad(lambda m: ((m @ x - y) ** 2).mean())(m)
        return xlamini.tree.map(lambda p, g: p - 0.5 * g if p.dtype == np.float32 else p, m, gradient)

    mat = sparse.bcoo_extract(BCOO.fromdense(M), jnp.zeros((3, 4)))
    for _ in range(300):
        mat = step(mat)
    np.testing.assert_allclose(mat.todense(), M, atol=1e-3)
