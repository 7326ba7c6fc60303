"""sparsify: which functions of arrays it takes to sparse ones, and control flow that sparse arrays pass through."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.experimental import sparse
from xlamini.experimental.sparse import BCOO, sparsify

pytestmark = pytest.mark.sample(8)

M = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32) / 5
V = np.array([1, 2, 3, 4], np.float32)


def loop(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1]), (0, x))[1]


@xlamini.custom_jvp
def custom(x: Any) -> Any:
    return x * 2


custom.defjvps(lambda tangent, out, x: 2 * tangent)


def chosen(x: Any) -> Any:
    return lax.cond(x.sum() > 1, lambda x: 2 * x, lambda x: -x, x)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: jnp.sin(x) + jnp.expm1(jnp.log1p(x)),
    "zero at zero": lambda x: jnp.sign(jnp.floor(jnp.arctan(jnp.tan(x)))),
    "complex": lambda x: jnp.real(x.astype("complex64") * 1j * 1j),
    "transpose": lambda x: jnp.swapaxes(x, 0, 1) @ jnp.ones(3),
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "vector of vectors": lambda x: jnp.dot(x[0], x[2]),
    "mean": lambda x: x.mean(),
    "stack": lambda x: jnp.stack([x, -x], 1),
    "concatenate": lambda x: jnp.concatenate([x, x[:1]]),
    "split": lambda x: jnp.split(x, 2, axis=1)[1],
    "broadcast": lambda x: jnp.broadcast_to(x, (2, 3, 4)),
    "dense on the way": lambda x: jnp.exp(sparse.todense(x)) - 1,
    "jit": xlamini.jit(lambda x: x * 2),
    "loop of fixed length": lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x),
    "while": loop,
    "cond": chosen,
    "dynamic row": lambda x: lax.dynamic_index_in_dim(x, x.sum().astype(int), keepdims=False),
    "custom derivative": custom,
    "checkpoint": xlamini.checkpoint(lambda x: jnp.sin(x * 2)),
    "unused": lambda x: jnp.ones(3),
    "as it is": lambda x: x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    f, mat = FUNCTIONS[name], BCOO.fromdense(M)
    expected = np.asarray(f(jnp.asarray(M)))
    found = sparse.todense(sparsify(f)(mat))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_results_are_sparse() -> None:
    names = ["elementwise", "einsum", "stack", "split", "broadcast", "jit", "while", "cond", "checkpoint", "as it is"]
    assert [name for name in names if not isinstance(sparsify(FUNCTIONS[name])(BCOO.fromdense(M)), BCOO)] == []


def test_containers_and_keywords() -> None:
    def f(tree: Any, *, v: Any, scale: Any = 1) -> Any:
        return {"product": tree["m"] @ v, "both": [tree["m"] * scale, v]}

    out = sparsify(f)({"m": BCOO.fromdense(M)}, v=V, scale=2)
    np.testing.assert_allclose(out["product"], M @ V, rtol=1e-6)
    np.testing.assert_allclose(out["both"][0].todense(), 2 * M)
    np.testing.assert_array_equal(out["both"][1], V)


def test_dense_functions_are_unchanged() -> None:
    np.testing.assert_allclose(sparsify(jnp.exp)(V), np.exp(V), rtol=1e-6)
    assert sparsify(lambda: 2)() == 2


def test_made_inside() -> None:
    out = sparsify(lambda x: BCOO.fromdense(x, nse=4) @ V)(M)
    np.testing.assert_allclose(out, M @ V, rtol=1e-6)


def test_scan() -> None:
    mats = BCOO.fromdense(np.stack([M, 2 * M]), n_batch=1)
    fixed = BCOO.fromdense(M.T)

    def f(xs: Any, m: Any) -> Any:
        return lax.scan(lambda c, x: (c + x.sum(), (x * 2, x @ m @ V[:3])), 0.0, xs)

    total, (doubled, products) = sparsify(f)(mats, fixed)
    np.testing.assert_allclose(total, 3 * M.sum(), rtol=1e-6)
    assert doubled.shape == (2, 3, 4)
    np.testing.assert_allclose(products, [M @ M.T @ V[:3], 2 * M @ M.T @ V[:3]], rtol=1e-5)


def test_with_jit_grad_and_vmap() -> None:
    mat = BCOO.fromdense(M)
    f = sparsify(lambda m, v: (jnp.sin(m) @ v).sum())
    expected = np.cos(M[M != 0]) * V[np.nonzero(M)[1]]
    for g in (sparse.grad(f), sparse.grad(xlamini.jit(f)), xlamini.jit(sparse.grad(f))):
        np.testing.assert_allclose(g(mat, V).data, expected, rtol=1e-6)
    batch = xlamini.vmap(f, in_axes=(None, 0))(mat, np.stack([V, 2 * V]))
    np.testing.assert_allclose(batch, [(np.sin(M) @ V).sum(), (np.sin(M) @ V).sum() * 2], rtol=1e-6)
    inside = sparsify(xlamini.vmap(lambda row: row * 2))
    with pytest.raises(NotImplementedError, match="a number"):
        sparsify(lambda m: m + 1)(mat)
    np.testing.assert_allclose(inside(mat).todense(), 2 * M)
