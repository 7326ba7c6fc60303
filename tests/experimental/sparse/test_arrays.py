"""Sparse arrays as values: made from others, as pytrees, through jit, vmap and loops."""
from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import xlamini
import xlamini.numpy as jnp
from tests.experimental.sparse.samples import dense, sample
from xlamini import lax, random
from xlamini.experimental import sparse
from xlamini.experimental.sparse import BCOO, BCSR

pytestmark = pytest.mark.sample(8)

M = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
T = np.stack([M, 2 * M[::-1]])
V = np.array([1, 2, 3, 4], np.float32)


@pytest.mark.parametrize("kind", [BCOO, BCSR])
def test_from_scipy(kind: Any) -> None:
    mat = kind.from_scipy_sparse(scipy.sparse.random(5, 7, 0.3, random_state=0, dtype=np.float32))
    reference = scipy.sparse.random(5, 7, 0.3, random_state=0, dtype=np.float32)
    assert mat.shape == (5, 7) and mat.nse == reference.nnz and mat.indices.dtype == np.int32
    np.testing.assert_array_equal(mat.todense(), reference.toarray())
    np.testing.assert_allclose(mat @ np.ones(7, np.float32), reference @ np.ones(7, np.float32), rtol=1e-6)


def test_attributes() -> None:
    mat = BCOO.fromdense(T, n_batch=1, n_dense=1)
    assert (mat.shape, mat.ndim, mat.size, mat.dtype) == ((2, 3, 4), 3, 24, np.float32)
    assert (mat.nse, mat.n_batch, mat.n_sparse, mat.n_dense) == (2, 1, 1, 1)
    assert repr(mat) == "BCOO(float32[2, 3, 4], nse=2, n_batch=1, n_dense=1)"
    assert isinstance(mat, sparse.JAXSparse) and len(mat) == 2
    np.testing.assert_array_equal([x.todense() for x in mat], T)
    assert mat.block_until_ready() is mat


def test_numpy_on_the_left() -> None:
    mat = BCOO.fromdense(M)
    np.testing.assert_array_equal(M.T @ mat.todense(), M.T @ mat)
    np.testing.assert_array_equal((M * mat).todense(), M * M)


def test_integers_and_booleans() -> None:
    mat = BCOO.fromdense(M.astype(np.int32))
    assert (mat @ np.ones(4, np.int32)).dtype == np.int32
    assert (mat @ V).dtype == np.float32
    half = BCOO.fromdense(jnp.asarray(M, "bfloat16"))
    assert (half @ jnp.ones(4, "bfloat16")).dtype == "bfloat16"
    wide = sparse.bcoo_dot_general(
        half, jnp.ones(4, "bfloat16"), dimension_numbers=(((1,), (0,)), ((), ())), preferred_element_type="float32"
    )
    np.testing.assert_array_equal(wide, M.sum(1))
    assert wide.dtype == np.float32
    np.testing.assert_array_equal(BCOO.fromdense(M > 1).todense(), M > 1)


def test_sum_of_parts_below_one_as_integers() -> None:
    mat = BCOO((jnp.array([0.5, 0.75, 1.5]), jnp.array([[1], [1], [0]])), shape=(3,))
    np.testing.assert_array_equal(mat.astype(int).todense(), [1, 1, 0])


def test_padding_may_hold_anything() -> None:
    mat = BCOO((jnp.array([1.0, np.nan, np.inf]), jnp.array([[1], [3], [-1]])), shape=(3,))
    for found in (mat.sum(), mat @ jnp.ones(3), (mat * mat).sum(), mat.reshape(3, 1).sum(), mat.update_layout().sum()):
        np.testing.assert_array_equal(found, 1)
    np.testing.assert_array_equal(mat.sum_duplicates().todense(), [0, 1, 0])


def test_pytree() -> None:
    mat = BCOO.fromdense(M)
    leaves, tree = xlamini.tree.flatten(mat)
    assert [x.shape for x in leaves] == [(4,), (4, 2)]
    assert tree == xlamini.tree.structure(BCOO.fromdense(M, nse=4))
    names = xlamini.tree.unflatten(tree, ["data", "indices"])
    assert repr(names) == "BCOO(data='data', indices='indices')"
    again = xlamini.tree.map(lambda name: getattr(mat, name), names)
    assert again.shape == (3, 4) and again.indices is leaves[1]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mat)).todense(), M)


def test_leading_dimensions_of_buffers_are_batch_dimensions() -> None:
    mats = [BCOO.fromdense(x, nse=4) for x in T]
    stacked = xlamini.tree.map(lambda *x: jnp.stack(x), *mats)
    assert repr(stacked) == "BCOO(float32[2, 3, 4], nse=4, n_batch=1)"
    np.testing.assert_array_equal(stacked.todense(), T)
    _, sums = lax.scan(lambda c, x: (c, x @ V), 0, stacked)
    np.testing.assert_array_equal(sums, T @ V)
    _, rows = lax.scan(lambda c, x: (c, BCOO.fromdense(x, nse=3)), 0, T)
    assert rows.shape == (2, 3, 4)
    np.testing.assert_array_equal(rows[1].todense(), BCOO.fromdense(T[1], nse=3).todense())


def test_vmap_and_jit_in_both_orders() -> None:
    mat = BCOO.fromdense(T, n_batch=1)

    def f(x: BCOO, v: Any) -> tuple[BCOO, Any]:
        return x.T * 2, x @ v

    for g in (xlamini.jit(xlamini.vmap(f, in_axes=(0, None))), xlamini.vmap(xlamini.jit(f), in_axes=(0, None))):
        doubled, product = g(mat, V)
        assert (doubled.shape, doubled.n_batch) == ((2, 4, 3), 1)
        np.testing.assert_array_equal(doubled.todense(), 2 * T.transpose(0, 2, 1))
        np.testing.assert_array_equal(product, T @ V)
    nested = xlamini.vmap(xlamini.vmap(lambda x: x @ V))(BCOO.fromdense(T[None], n_batch=2))
    np.testing.assert_array_equal(nested, (T @ V)[None])
    inner = xlamini.vmap(lambda x: x.sum(), in_axes=1)(BCOO.fromdense(T[:, None], n_batch=2))
    np.testing.assert_array_equal(inner, [T.sum()])


def test_vmap_along_a_later_batch_dimension_builds_no_other_container_from_types() -> None:
    class Checked:
        def __init__(self, x: Any):
            assert hasattr(x, "__array__") or not hasattr(x, "shape"), "made of a type"
            self.x = x

    xlamini.tree_util.register_pytree_node(Checked, lambda c: ((c.x,), None), lambda _, children: Checked(*children))
    mat, x = BCOO.fromdense(T[:, None], n_batch=2), np.arange(2, dtype=np.float32)[:1]
    mapped = xlamini.vmap(lambda m, c, *, y: m.sum() + c.x + y, in_axes=(1, 0))
    np.testing.assert_array_equal(mapped(mat, Checked(x + 1), y=x + 2), [T.sum() + 3])


def test_random_arrays_of_raw_keys_and_of_no_batches() -> None:
    raw, typed = (sparse.random_bcoo(k(0), (2, 4, 5), nse=3, n_batch=1) for k in (random.PRNGKey, random.key))
    np.testing.assert_array_equal(raw.indices, typed.indices)
    assert sparse.random_bcoo(random.key(0), (0, 4, 5), nse=3, n_batch=1).data.shape == (0, 3)


def test_extract() -> None:
    indices = np.array([[0, 1], [0, 1], [2, 2], [3, 4]], np.int32)
    mat = BCOO((np.ones(4, np.float32), indices), shape=(3, 4))
    np.testing.assert_array_equal(sparse.bcoo_extract(mat, M).data, [1, 0, 4, 0])
    np.testing.assert_array_equal(sparse.bcoo_extract(mat, M, assume_unique=True).data, [1, 1, 4, 0])
    gradient = xlamini.grad(lambda x: sparse.bcoo_extract(mat, x).data @ V)(jnp.asarray(M))
    np.testing.assert_array_equal(gradient, [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 3, 0]])
    rows = BCSR.fromdense(M)
    np.testing.assert_array_equal(sparse.bcsr_extract(rows.indices, rows.indptr, M + 1), [2, 3, 4, 5])


def test_sampled_products() -> None:
    a, b = (np.arange(1.0, n + 1, dtype=np.float32).reshape(shape) for n, shape in ((12, (2, 2, 3)), (24, (2, 3, 4))))
    indices = np.array([[[0, 1], [1, 3], [2, 4]], [[1, 1], [1, 0], [0, 0]]], np.int32)
    numbers, product = (((2,), (1,)), ((0,), (0,))), a @ b
    expected = [[product[0, 0, 1], product[0, 1, 3], 0], [product[1, 1, 1], product[1, 1, 0], product[1, 0, 0]]]
    found = sparse.bcoo_dot_general_sampled(a, b, indices, dimension_numbers=numbers)
    np.testing.assert_array_equal(found, expected)
    rows = sparse.bcoo_dot_general_sampled(a, b, np.array([[[1]], [[0]]], np.int32), dimension_numbers=numbers)
    np.testing.assert_array_equal(rows[:, 0], [product[0, 1], product[1, 0]])


def test_gather() -> None:
    mat, numbers = BCOO.fromdense(M), lax.GatherDimensionNumbers((1,), (0,), (0,))
    for starts in ([[2], [0], [2]], [[9], [0], [1]]):
        found = sparse.bcoo_gather(mat, jnp.array(starts), numbers, (1, 4))
        np.testing.assert_array_equal(found.todense(), M[np.minimum(np.ravel(starts), 2)])


@pytest.mark.full
def test_of_no_entries() -> None:
    mat = sparse.empty((3, 4))
    assert mat.nse == 0
    for x in (mat + mat, mat * mat, mat * M, mat[:2].T, mat.sum_duplicates(), mat.reshape(12), mat.sum(0)):
        assert not np.asarray(x.todense()).any()
    np.testing.assert_array_equal(mat @ V, np.zeros(3))
    np.testing.assert_array_equal((mat @ BCOO.fromdense(M.T)).todense(), np.zeros((3, 3)))
    assert BCOO.fromdense(np.zeros((0, 4), np.float32)).todense().shape == (0, 4)


def test_large_shapes_are_sorted_without_numbering_places() -> None:
    shape = (2**18, 2**18, 2**18)
    rows = np.array([[7, 2**18 - 1, 3], [1, 2, 3], [7, 2**18 - 1, 3]], np.int32)
    mat = BCOO((np.array([1, 2, 3], np.float32), rows), shape=shape).sum_duplicates()
    np.testing.assert_array_equal(mat.indices, [[1, 2, 3], [7, 2**18 - 1, 3]])
    np.testing.assert_array_equal(mat.data, [2, 4])
    np.testing.assert_array_equal((mat * mat).data, [4, 16])


def test_entries_of_another_index_dtype() -> None:
    mat = BCOO.fromdense(M, index_dtype=np.int8)
    for x in (mat, mat.T, mat[1:], mat + mat, mat.sum_duplicates(nse=5), mat.update_layout(n_batch=0)):
        assert x.indices.dtype == np.int8
    np.testing.assert_array_equal(mat.reshape(-1).todense(), M.ravel())


LONG = np.zeros((10, 100), np.float32)
LONG[[2, 9], [5, 90]] = 1, 3


@pytest.mark.full
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda m: m.reshape(1000), LONG.ravel()),
        (lambda m: sparse.bcoo_concatenate([m, m], dimension=1), np.concatenate([LONG, LONG], 1)),
        (lambda m: sparse.bcoo_broadcast_in_dim(m, shape=(10, 200, 100), broadcast_dimensions=(0, 2)),
         np.broadcast_to(LONG[:, None], (10, 200, 100))),
        (lambda m: BCOO.fromdense(LONG.repeat(20, 0), n_batch=1, index_dtype=np.int8).update_layout(n_batch=0),
         LONG.repeat(20, 0)),
        (lambda m: BCOO.fromdense(LONG.repeat(20, 1), n_dense=1, index_dtype=np.int8).update_layout(n_dense=0),
         LONG.repeat(20, 1)),
        (lambda m: BCSR.fromdense(LONG + 1, index_dtype=np.int8), LONG + 1),
        (lambda m: BCOO.fromdense(LONG.ravel(), index_dtype=np.int8), LONG.ravel()),
        (lambda m: sparse.eye(200, index_dtype=np.int8), np.eye(200)),
        (lambda m: m[:, ::200], LONG[:, ::200]),
    ],
)  # fmt: skip
def test_a_narrow_index_dtype_becomes_wider_where_indices_need_it(f: Any, expected: np.ndarray) -> None:
    mat = BCOO.fromdense(LONG, index_dtype=np.int8)
    assert mat.indices.dtype == np.int8
    np.testing.assert_array_equal(f(mat).todense(), expected)


def test_sample_is_what_the_tests_take_it_for() -> None:
    with xlamini.enable_x64(True):
        mat = sample((3, 4))
    assert not mat.unique_indices and dense(mat).any()
    inside = ((np.asarray(mat.indices) >= 0) & (np.asarray(mat.indices) < [3, 4])).all(1)
    assert inside.sum() == 5 and (mat.indices[0] == mat.indices[1]).all()
