"""BCSR: sparse arrays with compressed rows, and their functions, which go by way of coordinates."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import api_boundary_methods
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.pytree import register_pytree_with_keys_class
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.bcoo import BCOO, Batched, bcoo_fromdense
from xlamini.experimental.sparse.conversion import extracted
from xlamini.experimental.sparse.duplicates import bcoo_sort_indices, bcoo_sum_duplicates
from xlamini.experimental.sparse.entries import columns, fitting, mapped, padded
from xlamini.experimental.sparse.products import bcoo_dot_general
from xlamini.experimental.sparse.shapes import bcoo_broadcast_in_dim, bcoo_concatenate
from xlamini.lax import DotDimensionNumbers
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike


@register_pytree_with_keys_class
class BCSR(Batched):
    """A sparse array of shape `(*batch, rows, columns, *dense)`, as the elements of each row one after the other.

    `BCSR((data, indices, indptr), shape=shape)` takes `data` of shape `(*batch, nse, *dense)`, the column of each
    element in `indices` of shape `(*batch, nse)`, and in `indptr` of shape `(*batch, rows + 1)` where each row starts
    and the last one ends; what comes after is padding. A batch dimension may be 1 in each. Operations other than on the
    data alone return a BCOO. ValueError for shapes that do not fit.

    >>> m = BCSR((jnp.array([2.0, 3.0]), jnp.array([1, 0]), jnp.array([0, 1, 2])), shape=(2, 2))
    >>> m @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    """

    buffers: ClassVar[tuple[str, str, str]] = ("data", "indices", "indptr")
    shapes = "(*batch, nse, *dense), (*batch, nse) and (*batch, rows + 1)"
    index_rank = 1
    n_sparse = 2
    indptr: Array

    def _own_shapes(self, sizes: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
        return (self.nse, *sizes[2:]), (self.nse,), (sizes[0] + 1,)

    @classmethod
    def _of_scipy(cls, mat: Any) -> tuple[Any, ...]:
        csr = mat.tocsr()
        return csr.data, csr.indices, csr.indptr

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The array of a BCOO with two sparse dimensions (else ValueError), its entries sorted."""
        return from_bcoo(arr)

    def to_bcoo(self) -> BCOO:
        """The array in the format of coordinates."""
        return to_bcoo(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with one entry for each place; see `bcsr_sum_duplicates`."""
        return from_bcoo(bcoo_sum_duplicates(self.to_bcoo(), nse, remove_zeros))


api_boundary_methods(BCSR)


@composite()
def to_bcoo(mat: BCSR) -> BCOO:
    """The array in the format of coordinates: an entry is in the last row that starts at or before it."""
    indices, sizes = mat.indices, mat.shape[mat.n_batch : mat.n_batch + 2]

    def rows(found: Any, indptr: Any) -> Any:
        starts = jnp.zeros(found.shape[0], jnp.int32).at[indptr].add(1, mode="drop", wrap_negative_indices=False)
        row = (jnp.cumsum(starts, dtype=jnp.int32) - 1).astype(fitting(found.dtype, sizes))
        return padded(jnp.stack([row, found], -1), sizes)

    return BCOO((mat.data, mapped(rows, mat.n_batch, indices, mat.indptr)), shape=mat.shape, **mat.flags)


@composite()
def from_bcoo(arr: BCOO) -> BCSR:
    """The array of coordinates with compressed rows."""
    if arr.n_sparse != 2:
        raise ValueError(f"BCSR: the array must have two sparse dimensions, got {arr!r}; call update_layout")
    if not arr.indices_sorted:
        arr = bcoo_sort_indices(arr.like(arr.data, padded(arr.indices, arr.sparse_shape)))

    def starts(row: Any) -> Any:
        dtype = fitting(row.dtype, (*arr.sparse_shape, arr.nse))
        return jnp.searchsorted(row, jnp.arange(arr.sparse_shape[0] + 1, dtype=dtype)).astype(dtype)

    row, column = columns(arr.indices)
    buffers = arr.data, column, mapped(starts, arr.n_batch, row)
    return BCSR(buffers, shape=arr.shape, indices_sorted=True, unique_indices=arr.unique_indices)


@api_boundary
def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCSR:
    """The sparse array with the nonzero elements of a dense one, as `bcoo_fromdense`.

    ValueError unless two dimensions are sparse.

    >>> bcsr_fromdense(jnp.array([[0, 5], [6, 0]])).indptr
    Array([0, 1, 2], dtype=int32)
    """
    return from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


@takes_sparse
def bcsr_todense(mat: BCSR) -> Array:
    """The dense array.

    >>> bcsr_todense(bcsr_fromdense(jnp.array([[0, 5], [6, 0]])))
    Array([[0, 5],
           [6, 0]], dtype=int32)
    """
    return mat.todense()


@composite()
def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The elements of a dense array at the columns `indices` of the rows that `indptr` delimits.

    >>> bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.array([[1, 5], [6, 1]]))
    Array([5, 6], dtype=int32)
    """
    found, dense = jnp.asarray(indices), jnp.asarray(mat)
    n_batch = found.ndim - 1
    data = jnp.zeros((*found.shape, *dense.shape[n_batch + 2 :]), dense.dtype)
    rows = to_bcoo(BCSR((data, found, jnp.asarray(indptr)), shape=dense.shape)).indices
    return extracted(rows, dense, assume_unique=True)


@api_boundary
def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Any:
    """The product of two arrays as `bcoo_dot_general`.

    >>> m = bcsr_fromdense(jnp.array([[0.0, 5.0], [6.0, 0.0]]))
    >>> bcsr_dot_general(m, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([5., 6.], dtype=float32)
    """
    operands = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    options = {"precision": precision, "preferred_element_type": preferred_element_type, "out_sharding": out_sharding}
    return bcoo_dot_general(*operands, dimension_numbers=dimension_numbers, **options)


@takes_sparse
def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> BCSR:
    """The array with new or larger dimensions, as `bcoo_broadcast_in_dim`.

    >>> bcsr_broadcast_in_dim(bcsr_fromdense(jnp.eye(2)), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    return from_bcoo(bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions))


@takes_sparse
def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """The arrays one after the other along a batch or sparse dimension, as `bcoo_concatenate`.

    >>> bcsr_concatenate([bcsr_fromdense(jnp.eye(2))] * 2, dimension=1).shape
    (2, 4)
    """
    return from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))


@takes_sparse
def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
    """The array with one entry for each place, as `bcoo_sum_duplicates`.

    >>> bcsr_sum_duplicates(bcsr_fromdense(jnp.eye(2)), nse=3).nse
    3
    """
    return mat.sum_duplicates(nse, remove_zeros)
