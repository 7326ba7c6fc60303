"""Every operation in every layout: values, gradients in the data, vmap of both and jit, against dense arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.experimental.sparse.samples import LAYOUTS, compressed, dense, dense_rows, sample
from xlamini import lax
from xlamini.experimental import sparse
from xlamini.experimental.sparse import BCOO, sparsify

pytestmark = pytest.mark.full

M, T = (3, 4), (2, 3, 4)
V = np.array([0.5, -1.0, 2.0, 3.0])
W = np.arange(12.0).reshape(3, 4) - 5
KERNEL = np.arange(24.0).reshape(2, 3, 4)

EVERY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x,
    "pos": lambda x: +x,
    "add to itself": lambda x: x + x * 2,
    "subtract": lambda x: x - 2 * x,
    "add dense": lambda x: x + np.ones(x.shape),
    "subtract dense": lambda x: np.ones(x.shape) - x,
    "multiply by a number": lambda x: 3 * x,
    "multiply by dense": lambda x: x * W,
    "multiply by a vector": lambda x: V * x,
    "multiply by itself": lambda x: x * (x + x),
    "divide by a number": lambda x: x / 2,
    "divide by dense": lambda x: x / (W + 0.5),
    "sum": lambda x: x.sum(),
    "sum over one": lambda x: x.sum(0),
    "sum over the last": lambda x: x.sum(-1),
    "sum over two": lambda x: x.sum((0, 1)),
    "square": lambda x: x**2,
    "slice": lambda x: x[1:, :2],
    "steps": lambda x: x[::2, 1::2],
    "backwards": lambda x: x[::-1],
    "row": lambda x: x[1],
    "negative row": lambda x: x[-1],
    "ellipsis": lambda x: x[..., 1],
    "new axis": lambda x: x[None],
    "astype": lambda x: x.astype("float32").astype("float64"),
}
MATRICES: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: x.T,
    "matmul vector": lambda x: x @ V,
    "matmul matrix": lambda x: x @ W.T,
    "rmatmul vector": lambda x: V[:3] @ x,
    "rmatmul matrix": lambda x: W.T @ x,
    "matmul sparse": lambda x: x @ x.T,
    "abs": lambda x: abs(x),
    "element": lambda x: x[1, 2],
    "rows": lambda x: x[np.array([2, 0, 2])],
    "last axis": lambda x: x[:, None],
    "reshape": lambda x: x.reshape(4, 3),
    "reshape to a vector": lambda x: x.reshape(-1),
}


def same(x: Any, y: Any) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6, atol=1e-9)


def check(f: Callable[[Any], Any], mat: Any, g: Callable[[Any], Any] | None = None) -> None:
    """`f(mat)` equals `g` of the dense array: eagerly; and in a program, vmapped, with the gradients of both."""
    g = g or f
    expected = np.asarray(g(jnp.asarray(dense(mat))))
    out = sparse.todense(f(mat))
    assert out.dtype == expected.dtype
    same(out, expected)

    def weighted(f: Callable[[Any], Any], data: Any, of: Callable[[Any], Any]) -> Any:
        out = sparse.todense(f(of(data)))
        return (out * (1 + jnp.arange(out.size).reshape(out.shape))).sum(), out

    def both(mat: Any) -> Any:
        derivative = xlamini.value_and_grad(weighted, argnums=1, has_aux=True)
        return derivative(f, mat.data, mat.with_data), derivative(g, mat.data, lambda d: mat.with_data(d).todense())

    batch = xlamini.tree.map(lambda x: jnp.stack([x, x]), mat)
    batch = batch.with_data(batch.data * jnp.array([1.0, 2.0]).reshape(2, *[1] * mat.data.ndim))
    found, wanted = xlamini.jit(xlamini.vmap(both))(batch)
    xlamini.tree.map(same, found, wanted)
    same(found[0][1][0], expected)


@pytest.fixture(autouse=True)
def x64() -> Any:
    with xlamini.enable_x64(True):
        yield


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1)], ids=str)
def test_layouts(name: str, layout: tuple[int, int]) -> None:
    check(EVERY[name], sample(M, *layout))


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", {**EVERY, **MATRICES})
def test_compressed_rows(name: str) -> None:
    mat = compressed(M)
    same(mat.todense(), dense_rows(mat))
    check({**EVERY, **MATRICES}[name], mat)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str) -> None:
    check(MATRICES[name], sample(M))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_todense(layout: tuple[int, int]) -> None:
    mat = sample(T, *layout)
    same(mat.todense(), dense(mat))


def product(numbers: Any, rhs: Any, swapped: bool = False) -> tuple[Callable[..., Any], Callable[..., Any]]:
    if swapped:
        return (
            lambda x: sparse.bcoo_dot_general(rhs, x, dimension_numbers=numbers),
            lambda x: lax.dot_general(sparse.todense(jnp.asarray(rhs)), x, numbers),
        )
    return (
        lambda x: sparse.bcoo_dot_general(x, rhs, dimension_numbers=numbers),
        lambda x: lax.dot_general(x, jnp.asarray(rhs), numbers),
    )


PRODUCTS = {
    "batch": (((2,), (2,)), ((0,), (0,))),
    "contract a batch dimension": (((0, 2), (0, 2)), ((), ())),
    "contract sparse dimensions": (((1, 2), (1, 2)), ((), ())),
    "free batch dimension": (((2,), (2,)), ((), ())),
    "contract all": (((0, 1, 2), (0, 1, 2)), ((), ())),
    "contract all in another order": (((2, 0, 1), (2, 0, 1)), ((), ())),
    "outer": (((), ()), ((), ())),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("swapped", [False, True])
def test_products(name: str, swapped: bool) -> None:
    check(product(PRODUCTS[name], KERNEL, swapped)[0], sample(T, 1), product(PRODUCTS[name], KERNEL, swapped)[1])


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["free batch dimension", "contract sparse dimensions"])
@pytest.mark.parametrize("layout", [(0, 0), (0, 1)], ids=str)
def test_products_in_other_layouts(name: str, layout: tuple[int, int]) -> None:
    f, g = product(PRODUCTS[name], KERNEL)
    check(f, sample(T, *layout), g)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_sparse_arrays(name: str) -> None:
    other = sample(T, 1, nse=4, seed=1)
    f, _ = product(PRODUCTS[name], other)
    check(f, sample(T, 1), lambda x: lax.dot_general(x, jnp.asarray(dense(other)), PRODUCTS[name]))


def test_products_of_sparse_arrays_in_other_layouts() -> None:
    numbers = (((1,), (1,)), ((), ()))
    square = sample((3, 3), 0, 1, nse=4, seed=1)
    check(
        lambda x: sparse.bcoo_dot_general(x, square, dimension_numbers=numbers),
        sample(T, 1, 1),
        lambda x: lax.dot_general(x, jnp.asarray(dense(square)), numbers),
    )


SHAPES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "transpose": (lambda x: sparse.bcoo_transpose(x, permutation=(0, 2, 1)), lambda x: lax.transpose(x, (0, 2, 1))),
    "reshape": (lambda x: sparse.bcoo_reshape(x, new_sizes=(2, 2, 6)), lambda x: x.reshape(2, 2, 6)),
    "squeeze": (
        lambda x: sparse.bcoo_squeeze(x[:, :1], dimensions=(1,)),
        lambda x: lax.squeeze(x[:, :1], (1,)),
    ),
    "rev": (lambda x: sparse.bcoo_rev(x, (0, 2)), lambda x: lax.rev(x, (0, 2))),
    "broadcast in front": (
        lambda x: sparse.bcoo_broadcast_in_dim(x, shape=(5, 2, 3, 4), broadcast_dimensions=(1, 2, 3)),
        lambda x: lax.broadcast_in_dim(x, (5, 2, 3, 4), (1, 2, 3)),
    ),
    "broadcast between": (
        lambda x: sparse.bcoo_broadcast_in_dim(x, shape=(2, 3, 5, 4), broadcast_dimensions=(0, 1, 3)),
        lambda x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (0, 1, 3)),
    ),
    "broadcast an enlarged one": (
        lambda x: sparse.bcoo_broadcast_in_dim(x[:, 1:2], shape=(2, 3, 4), broadcast_dimensions=(0, 1, 2)),
        lambda x: lax.broadcast_in_dim(x[:, 1:2], (2, 3, 4), (0, 1, 2)),
    ),
    "concatenate in front": (
        lambda x: sparse.bcoo_concatenate([x, 2 * x, x[1:]], dimension=0),
        lambda x: jnp.concatenate([x, 2 * x, x[1:]], 0),
    ),
    "concatenate": (
        lambda x: sparse.bcoo_concatenate([x, 2 * x[:, 1:]], dimension=1),
        lambda x: jnp.concatenate([x, 2 * x[:, 1:]], 1),
    ),
    "dynamic slice": (
        lambda x: sparse.bcoo_dynamic_slice(x, (jnp.asarray(1), 9, jnp.asarray(1)), (1, 2, 2)),
        lambda x: lax.dynamic_slice(x, (1, 9, 1), (1, 2, 2)),
    ),
    "reduce sum": (lambda x: sparse.bcoo_reduce_sum(x, axes=(0, -1)), lambda x: x.sum((0, 2))),
    "sum duplicates": (lambda x: x.sum_duplicates(nse=6), lambda x: x),
    "sort": (lambda x: x.sort_indices(), lambda x: x),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n_batch", [0, 1])
def test_shapes(name: str, n_batch: int) -> None:
    check(SHAPES[name][0], sample(T, n_batch, nse=6), SHAPES[name][1])


@pytest.mark.sample(8)
@pytest.mark.parametrize("before", LAYOUTS, ids=str)
@pytest.mark.parametrize("after", LAYOUTS, ids=str)
def test_update_layout(before: tuple[int, int], after: tuple[int, int]) -> None:
    mat = sample(T, *before)
    new = mat.update_layout(n_batch=after[0], n_dense=after[1], on_inefficient=None)
    assert (new.n_batch, new.n_dense) == after
    same(new.todense(), dense(mat))


def test_gradient_of_update_layout() -> None:
    check(lambda x: x.update_layout(n_batch=1, n_dense=0, on_inefficient=None), sample(T, 0, 1), lambda x: x)


NUMBERS = ("NHC", "HIO", "NCH")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "options",
    [
        {"window_strides": (1,), "padding": "SAME"},
        {"window_strides": (2,), "padding": [(1, 2)], "rhs_dilation": (2,)},
        {"window_strides": (1,), "padding": [(0, 1)], "lhs_dilation": (2,)},
    ],
    ids=["same", "strides", "dilation"],
)
def test_convolution(options: dict[str, Any]) -> None:
    kernel = sample((2, 3, 2), nse=4, seed=2)
    check(
        lambda x: sparse.bcoo_conv_general_dilated(x, kernel, dimension_numbers=NUMBERS, **options),
        sample((2, 5, 3)),
        lambda x: lax.conv_general_dilated(x, jnp.asarray(dense(kernel)), dimension_numbers=NUMBERS, **options),
    )


def test_convolution_of_images() -> None:
    kernel = sample((2, 1, 2, 3), n_batch=1, nse=4, seed=2)
    check(
        lambda x: sparse.bcoo_conv_general_dilated(x, kernel, window_strides=(1, 2), padding="SAME"),
        sample((1, 1, 3, 4), n_batch=2),
        lambda x: lax.conv_general_dilated(x, jnp.asarray(dense(kernel)), (1, 2), "SAME"),
    )


def test_shared_indices() -> None:
    """Batch dimensions of size 1 are broadcast: one pattern for all batches, and different data."""
    data, indices = np.arange(6.0).reshape(2, 3) + 1, np.array([[[0, 1], [2, 3], [2, 4]]], np.int32)
    mat = BCOO((data, indices), shape=T)
    same(mat.todense(), dense(mat))
    for f in (*[f for f, _ in SHAPES.values()][:6], lambda x: x.sum(0), lambda x: x * KERNEL, lambda x: x + x):
        same(f(mat).todense(), f(mat.update_layout(n_batch=0)).todense())
    both = BCOO((data[:1], indices), shape=T)
    same(both.todense(), dense(both))
    same((both @ V), dense(both) @ V)
    same(both.sum(0).todense(), dense(both).sum(0))


def test_sparsify_of_functions() -> None:
    check(sparsify(lambda x: jnp.sin(x) @ jnp.tanh(x).T), sample(M), lambda x: jnp.sin(x) @ jnp.tanh(x).T)
    check(sparsify(lambda x: jnp.sqrt(abs(x)).mean(0)), sample(M, 1), lambda x: jnp.sqrt(abs(x)).mean(0))
