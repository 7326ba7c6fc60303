"""Conversion to and from dense arrays: bcoo_todense, bcoo_extract, and the entries of a dense array."""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from xlamini import numpy as jnp
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.duplicates import is_first
from xlamini.experimental.sparse.entries import added_at, full_batch, mapped, masked, unraveled, values_at
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


@takes_sparse
@composite()
def bcoo_todense(mat: BCOO) -> Array:
    """The dense array; elements at the same place are added.

    >>> from xlamini.experimental.sparse import BCOO
    >>> bcoo_todense(BCOO((jnp.array([1, 2, 3]), jnp.array([[0], [2], [2]])), shape=(3,)))
    Array([1, 0, 5], dtype=int32)
    """
    hints = {"is_sorted": mat.indices_sorted, "is_unique": mat.unique_indices}
    scattered = functools.partial(added_at, shape=mat.shape[mat.n_batch :], **hints)
    return full_batch(mapped(scattered, mat.n_batch, mat.indices, mat.data), mat.shape[: mat.n_batch])


@takes_sparse
def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The array with the elements of `arr`, of the same shape, at the indices of `sparr`.

    Of several entries at one place the first has the element and the others are 0. With `assume_unique`, by default
    `sparr.unique_indices`, no such entries are looked for. ValueError for another shape.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_extract(eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])).data
    Array([1., 4.], dtype=float32)
    """
    dense = jnp.asarray(arr)
    if dense.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: arr must have the shape {sparr.shape} of sparr, got {dense.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    return sparr.with_data(extracted(sparr.indices, dense, assume_unique=bool(unique)))


@composite(static=("assume_unique",))
def extracted(indices: Any, dense: Any, *, assume_unique: bool) -> Array:
    """The elements of a dense array at rows of indices."""
    n_batch = indices.ndim - 2
    data = mapped(lambda rows, x: values_at(x, rows), n_batch, indices, dense)
    return data if assume_unique else masked(data, mapped(is_first, n_batch, indices))


def count_nse(dense: Any, n_batch: int, n_dense: int) -> Any:
    """The number of entries that a dense array needs: the largest number of nonzero elements in a batch."""
    mask = _nonzero(dense, n_dense)
    return mask.sum(tuple(range(n_batch, mask.ndim))).max(initial=0)


def _nonzero(dense: Any, n_dense: int) -> Any:
    return (dense != 0).any(tuple(range(dense.ndim - n_dense, dense.ndim)))


@composite(static=("nse", "n_batch", "n_dense", "index_dtype"))
def dense_entries(dense: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> tuple[Array, Array]:
    """The data and the indices of the first `nse` nonzero elements of each batch, in order, then padding."""

    def rows(mask: Any) -> Any:
        (places,) = jnp.nonzero(mask.ravel(), size=nse, fill_value=mask.size)
        return unraveled(places, mask.shape, index_dtype)

    indices = mapped(rows, n_batch, _nonzero(dense, n_dense))
    return extracted(indices, dense, assume_unique=True), indices
