"""New and larger dimensions: bcoo_broadcast_in_dim."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xlamini import lax, numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.conversion import unraveled
from xlamini.experimental.sparse.entries import columns, padded, rows_of, within
from xlamini.staging import composite

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


@takes_sparse
@composite(static=("shape", "broadcast_dimensions"))
def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> BCOO:
    """The array with new dimensions, and dimensions of size 1 enlarged, as `lax.broadcast_in_dim` does.

    Dimension i becomes `broadcast_dimensions[i]`. New dimensions before the first sparse one are batch dimensions. For
    a new or enlarged sparse dimension of size n there are n times as many entries. ShapeError where shapes do not fit.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_broadcast_in_dim(eye(2), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCOO(float32[3, 2, 2], nse=2, n_batch=1)
    """
    dims = tuple(broadcast_dimensions)
    _check(mat, shape, dims)
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    n_batch, dense_from = _kinds(mat, len(shape), dims)
    sparse = shape[n_batch:dense_from]
    data, indices = _repeated(mat, sparse, {d - n_batch: i for i, d in enumerate(dims[first:last])})
    batch, of_batch = (*shape[:n_batch], indices.shape[first]), (*dims[:first], n_batch)
    of_dense = tuple(d - dense_from + n_batch + 1 for d in dims[last:])
    data = lax.broadcast_in_dim(data, (*batch, *shape[dense_from:]), (*of_batch, *of_dense))
    indices = lax.broadcast_in_dim(indices, (*batch, len(sparse)), (*of_batch, n_batch + 1))
    return mat.like(data, indices, tuple(shape))


def _check(mat: BCOO, shape: Sequence[int], dims: tuple[int, ...]) -> None:
    fits = len(dims) == mat.ndim and sorted({*dims}) == list(dims) and all(0 <= d < len(shape) for d in dims)
    if not fits or any(shape[d] != n and n != 1 for d, n in zip(dims, mat.shape, strict=True)):
        raise ShapeError(
            f"bcoo_broadcast_in_dim: shape {mat.shape} cannot become the dimensions {dims} of shape {tuple(shape)}"
        )


def _kinds(mat: BCOO, ndim: int, dims: tuple[int, ...]) -> tuple[int, int]:
    """The first sparse and the first dense dimension of the result."""
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    dense_from = dims[last] if mat.n_dense else ndim
    return (dims[first] if mat.n_sparse else dense_from), dense_from


def _repeated(mat: BCOO, sizes: Sequence[int], origin: dict[int, int]) -> tuple[Any, Any]:
    """Entries repeated for each index along the sparse dimensions that are new or enlarged.

    `sizes` are those of all sparse dimensions; `origin[d]` is the one of `mat` that dimension d comes from.
    """
    axis, old = mat.n_batch, mat.sparse_shape
    is_new = [d not in origin or old[origin[d]] != n for d, n in enumerate(sizes)]
    repeats = [n if new else 1 for n, new in zip(sizes, is_new, strict=True)]
    times = math.prod(repeats)
    indices = jnp.repeat(mat.indices, times, axis)
    found = columns(indices)
    new = columns(jnp.tile(unraveled(jnp.arange(times), repeats, indices[..., :0]), (mat.nse, 1)))
    rows = [new[d] if is_new[d] else found[origin[d]] for d in range(len(sizes))]
    wide = [jnp.broadcast_to(c, indices.shape[:-1]) for c in rows]
    return jnp.repeat(mat.data, times, axis), padded(rows_of(wide, indices), within(indices, old), sizes)
