"""BCOO: sparse arrays in the format of coordinates, with batch dimensions and dense ones."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import api_boundary_methods
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.pytree import register_pytree_with_keys_class
from xlamini.experimental.sparse.conversion import bcoo_todense, count_nse, dense_entries
from xlamini.experimental.sparse.duplicates import bcoo_sort_indices, bcoo_sum_duplicates, known_nse
from xlamini.experimental.sparse.entries import fitting, full_batch
from xlamini.experimental.sparse.layouts import bcoo_update_layout
from xlamini.experimental.sparse.operators import SparseOperators
from xlamini.numpy.arguments import as_index
from xlamini.runtime import Array
from xlamini.typing import ArrayLike, DTypeLike


class Batched(SparseOperators):
    """Base of the formats with batch and dense dimensions."""

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> Self:
        """The array with the nonzero elements of a dense one; see `bcoo_fromdense`."""
        return cls.from_bcoo(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch))

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> Self:
        """The array of a matrix of scipy.sparse. NotImplementedError for batch or dense dimensions."""
        if n_dense or n_batch:
            raise NotImplementedError(
                f"{cls.__name__}.from_scipy_sparse: SciPy's matrices have no batch and no dense dimensions"
            )
        data, *indices = cls._of_scipy(mat)
        dtype = fitting(index_dtype or np.int32, (*mat.shape, mat.nnz))
        return cls((data, *(x.astype(dtype) for x in indices)), shape=mat.shape)

    @classmethod
    @abstractmethod
    def from_bcoo(cls, mat: BCOO) -> Self:
        """The array of a BCOO."""

    @classmethod
    @abstractmethod
    def _of_scipy(cls, mat: Any) -> tuple[Any, ...]:
        """The buffers of a matrix of scipy.sparse."""


@register_pytree_with_keys_class
class BCOO(Batched):
    """A sparse array of shape `(*batch, *sparse, *dense)`, as the elements at some rows of indices.

    `BCOO((data, indices), shape=shape)` takes `data` of shape `(*batch, nse, *dense)`, and `indices` of shape
    `(*batch, nse, n_sparse)`; a batch dimension may be 1 in either. Elements at the same row are added; rows out of
    bounds have no effect. `indices_sorted` and `unique_indices` are promises, on which functions rely. ValueError for
    shapes that do not fit.

    >>> m = BCOO((jnp.array([2.0, 3.0]), jnp.array([[0, 1], [1, 0]])), shape=(2, 2))
    >>> m @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    >>> (m * 2).todense()
    Array([[0., 4.],
           [6., 0.]], dtype=float32)
    """

    buffers: ClassVar[tuple[str, str]] = ("data", "indices")
    shapes = "(*batch, nse, *dense) and (*batch, nse, n_sparse)"
    index_rank = 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return self.indices.shape[-1]

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        """The sizes of the sparse dimensions."""
        return self.shape[self.n_batch : self.n_batch + self.n_sparse]

    def _own_shapes(self, sizes: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
        return (self.nse, *sizes[self.n_sparse :]), (self.nse, self.n_sparse)

    def like(
        self,
        data: Any,
        indices: Any,
        shape: tuple[int, ...] | None = None,
        *,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> BCOO:
        """An array of other buffers, by default of the same shape."""
        flags = {"indices_sorted": indices_sorted, "unique_indices": unique_indices}
        return BCOO((data, indices), shape=self.shape if shape is None else shape, **flags)

    def full(self) -> tuple[Any, Any]:
        """The buffers with their batch dimensions in full."""
        batch = self.shape[: self.n_batch]
        return full_batch(self.data, batch), full_batch(self.indices, batch)

    def data_axes(self, dims: Iterable[int]) -> list[int]:
        """The dimensions of `data` that these dimensions of the array are; a sparse one is none of them."""
        dense_from = self.n_batch + self.n_sparse
        return [d if d < self.n_batch else d - self.n_sparse + 1 for d in dims if not self.n_batch <= d < dense_from]

    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> BCOO:
        """The array itself."""
        return mat

    @classmethod
    def _of_scipy(cls, mat: Any) -> tuple[Any, ...]:
        coo = mat.tocoo()
        return coo.data, np.stack([coo.row, coo.col], axis=1)

    def to_bcoo(self) -> BCOO:
        return self

    def sort_indices(self) -> BCOO:
        """The array with sorted indices; see `bcoo_sort_indices`."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with one entry for each place; see `bcoo_sum_duplicates`."""
        return bcoo_sum_duplicates(self, nse=nse, remove_zeros=remove_zeros)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The array with other numbers of batch and dense dimensions; see `bcoo_update_layout`."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


api_boundary_methods(Batched)
api_boundary_methods(BCOO)


@api_boundary
def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCOO:
    """The sparse array with the nonzero elements of a dense one, in order.

    `nse` is their number in each batch: elements beyond it are left out, and padding fills up. By default it is the
    number needed; as it depends on values, it has to be given under `jit` and `vmap` (else ValueError).

    >>> bcoo_fromdense(jnp.array([[0, 5], [6, 0]])).indices
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    dense = jnp.asarray(mat)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > dense.ndim:
        raise ValueError(f"fromdense: n_batch={n_batch} and n_dense={n_dense} do not fit an array of rank {dense.ndim}")
    if nse is None:
        nse = known_nse("fromdense", count_nse(dense, n_batch, n_dense))
    count, dtype = as_index("fromdense", "nse", nse), np.dtype(index_dtype)
    entries = dense_entries(dense, nse=count, n_batch=n_batch, n_dense=n_dense, index_dtype=dtype)
    return BCOO(entries, shape=dense.shape, indices_sorted=True, unique_indices=True)
