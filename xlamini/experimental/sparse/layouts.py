"""Other numbers of batch and dense dimensions: bcoo_update_layout."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xlamini import numpy as jnp
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.efficiency import object_to
from xlamini.experimental.sparse.entries import masked, padded, unraveled, within
from xlamini.staging import composite

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


@takes_sparse
def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense dimensions; None leaves a number as it is.

    A sparse dimension of size n that becomes a batch or a dense one multiplies the elements stored by n. What happens
    then is `on_inefficient`: "error" (SparseEfficiencyError), "warn" (SparseEfficiencyWarning) or None. ValueError for
    numbers that do not fit.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_update_layout(eye(2), n_batch=1, on_inefficient=None).data
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    batch, dense = mat.n_batch if n_batch is None else n_batch, mat.n_dense if n_dense is None else n_dense
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"update_layout: on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}")
    if batch < 0 or dense < 0 or batch + dense > mat.ndim:
        raise ValueError(f"update_layout: n_batch={batch} and n_dense={dense} do not fit an array of rank {mat.ndim}")
    of_batch = "n_batch", mat.n_batch, batch, mat.shape[mat.n_batch : batch]
    of_dense = "n_dense", mat.n_dense, dense, mat.shape[mat.ndim - dense : mat.ndim - mat.n_dense]
    for name, before, after, sizes in (of_batch, of_dense):
        if (times := math.prod(sizes)) > 1:
            text = f"update_layout: increasing {name} from {before} to {after} stores {times} times the elements of"
            object_to(f"{text} {mat!r}", on_inefficient)
    return with_layout(mat, n_batch=batch, n_dense=dense)


@composite(static=("n_batch", "n_dense"))
def with_layout(mat: BCOO, *, n_batch: int, n_dense: int) -> BCOO:
    """The same array in another layout. Dimensions first become sparse, as they may change to the other kind."""
    if n_dense < mat.n_dense:
        mat = _sparse_from_dense(mat, mat.n_dense - n_dense)
    if n_batch < mat.n_batch:
        mat = _sparse_from_batch(mat, n_batch)
    if n_dense > mat.n_dense:
        mat = _dense_from_sparse(mat, n_dense - mat.n_dense)
    return _batch_from_sparse(mat, n_batch - mat.n_batch) if n_batch > mat.n_batch else mat


def _grid(sizes: tuple[int, ...], dtype: Any) -> Any:
    """The rows of indices of all places of an array."""
    return unraveled(jnp.arange(math.prod(sizes)), sizes, dtype)


def _sparse_from_dense(mat: BCOO, count: int) -> BCOO:
    """One entry for each place along the first `count` dense dimensions."""
    axis, sizes = mat.n_batch, mat.shape[mat.ndim - mat.n_dense :][:count]
    grid, places = _grid(sizes, mat.indices.dtype), math.prod(sizes)
    data = mat.data.reshape((*mat.data.shape[:axis], mat.nse * places, *mat.data.shape[axis + 1 + count :]))
    rows = jnp.repeat(mat.indices, places, axis)
    added = jnp.broadcast_to(jnp.tile(grid, (mat.nse, 1)), (*rows.shape[:-1], count))
    return mat.like(data, jnp.concatenate([rows, added], -1))


def _sparse_from_batch(mat: BCOO, n_batch: int) -> BCOO:
    """The entries of the batch dimensions after the first `n_batch` in one list."""
    sizes, (data, indices) = mat.shape[n_batch : mat.n_batch], mat.full()
    merged = (*mat.shape[:n_batch], math.prod(sizes) * mat.nse)
    grid = _grid(sizes, indices.dtype).reshape((*sizes, 1, len(sizes)))
    rows = jnp.concatenate([jnp.broadcast_to(grid, (*indices.shape[:-1], len(sizes))), indices], -1)
    rows = padded(rows, (*sizes, *mat.sparse_shape))
    return mat.like(data.reshape((*merged, *data.shape[mat.n_batch + 1 :])), rows.reshape((*merged, rows.shape[-1])))


def _dense_from_sparse(mat: BCOO, count: int) -> BCOO:
    """The data of each entry at its place along the last `count` sparse dimensions, among zeros."""
    sizes, last = mat.sparse_shape[mat.n_sparse - count :], mat.n_sparse - count
    at = (mat.indices[..., None, last:] == _grid(sizes, mat.indices.dtype)).all(-1)
    data = masked(jnp.expand_dims(mat.data, mat.n_batch + 1), at)
    data = data.reshape((*data.shape[: mat.n_batch + 1], *sizes, *mat.data.shape[mat.n_batch + 1 :]))
    return mat.like(data, mat.indices[..., :last])


def _batch_from_sparse(mat: BCOO, count: int) -> BCOO:
    """The entries of each place along the first `count` sparse dimensions, as a batch; the others become padding."""
    sizes, axis = mat.sparse_shape[:count], mat.n_batch
    grid = _grid(sizes, mat.indices.dtype).reshape((*sizes, 1, count))
    data, indices = (jnp.expand_dims(x, range(axis, axis + count)) for x in mat.full())
    here = (indices[..., :count] == grid).all(-1) & within(indices, mat.sparse_shape)
    rows = padded(indices[..., count:], mat.sparse_shape[count:], here)
    return mat.like(masked(data, here), rows, unique_indices=mat.unique_indices)
