"""The same elements at other places: bcoo_transpose, bcoo_reshape, bcoo_squeeze and bcoo_rev."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xlamini import lax, numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.batches import full_batch
from xlamini.experimental.sparse.conversion import unraveled
from xlamini.experimental.sparse.entries import columns, masked, padded, rows_of, within
from xlamini.numpy.arguments import as_axes
from xlamini.staging import composite

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


@takes_sparse
@composite(static=("permutation",))
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its dimensions permuted, each within the batch, the sparse or the dense ones.

    NotImplementedError for a permutation across these kinds.

    >>> from xlamini.experimental.sparse import BCOO
    >>> bcoo_transpose(BCOO.fromdense(jnp.array([[0, 1], [0, 2]])), permutation=(1, 0)).indices
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    order = as_axes("bcoo_transpose", permutation, mat.ndim)
    if len(order) != mat.ndim:
        raise ValueError(f"bcoo_transpose: permutation {order} must name the {mat.ndim} dimensions of {mat!r}")
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = order[:first], order[first:last], order[last:]
    if sorted(batch) != list(range(first)) or sorted(dense) != list(range(last, mat.ndim)):
        raise NotImplementedError(
            f"bcoo_transpose: permutation {order} of {mat!r} moves a dimension across batch, sparse and dense ones; "
            "call update_layout first"
        )
    data = lax.transpose(mat.data, (*batch, first, *(d - last + first + 1 for d in dense)))
    indices = lax.transpose(mat.indices, (*batch, first, first + 1))
    found = columns(indices)
    moved = rows_of([found[d - first] for d in sparse], indices)
    keeps_order = sparse == tuple(range(first, last))
    flags = {"indices_sorted": mat.indices_sorted and keeps_order, "unique_indices": mat.unique_indices}
    return mat.like(data, moved, tuple(mat.shape[d] for d in order), **flags)


@takes_sparse
@composite(static=("new_sizes", "dimensions"))
def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> BCOO:
    """The array in a shape of the same size; batch, sparse and dense dimensions are reshaped each by themselves.

    `dimensions` permutes first. ShapeError for another size; ValueError for a shape across kinds of dimensions.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_reshape(eye(2), new_sizes=(4,)).indices.ravel()
    Array([0, 3], dtype=int32)
    """
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = tuple(new_sizes)
    if math.prod(sizes) != mat.size:
        raise ShapeError(f"bcoo_reshape: an array of shape {mat.shape} cannot have the shape {sizes}")
    n_batch, n_dense = _split_sizes(mat, sizes)
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch : len(sizes) - n_dense], sizes[len(sizes) - n_dense :]
    data = full_batch(mat.data, mat.shape[: mat.n_batch]).reshape((*batch, mat.nse, *dense))
    indices = full_batch(mat.indices, mat.shape[: mat.n_batch])
    places = _places(indices, mat.sparse_shape)
    rows = unraveled(places, sparse, indices).reshape((*batch, mat.nse, len(sparse)))
    return mat.like(data, rows, sizes, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _places(indices: Any, sizes: Sequence[int]) -> Any:
    """The place of each row in row-major order; the array's size for padding."""
    size = math.prod(sizes)
    dtype = jnp.promote_types(indices.dtype, jnp.int32)
    if size > jnp.iinfo(dtype).max:
        raise ValueError(f"bcoo_reshape: {dtype} cannot number {size} places; use int64 indices, with enable_x64")
    place = jnp.zeros(indices.shape[:-1], dtype)
    for column, n in zip(columns(indices), sizes, strict=True):
        place = place * n + column.astype(dtype)
    return jnp.where(within(indices, sizes), place, size)


def _split_sizes(mat: BCOO, sizes: tuple[int, ...]) -> tuple[int, int]:
    """The numbers of batch and of dense dimensions of a shape that `mat` is reshaped to.

    As many of the dimensions are batch dimensions as have the size of those of `mat`, none if it has none.
    """
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    fitting = [n for n in range(len(sizes) + 1) if math.prod(sizes[:n]) == math.prod(mat.shape[:first])]
    trailing = [n for n in range(len(sizes) + 1) if math.prod(sizes[len(sizes) - n :]) == math.prod(mat.shape[last:])]
    n_batch = max(fitting, default=None) if first else 0
    n_dense = min(trailing, default=None) if mat.n_dense else 0
    if n_batch is None or n_dense is None or n_batch + n_dense > len(sizes):
        raise ValueError(
            f"bcoo_reshape: the shape {sizes} mixes batch, sparse and dense dimensions of {mat!r}; call update_layout"
        )
    return n_batch, n_dense


@takes_sparse
@composite(static=("dimensions",))
def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without these dimensions of size 1; ShapeError where one has another size.

    >>> from xlamini.experimental.sparse import empty
    >>> bcoo_squeeze(empty((1, 3)), dimensions=(0,)).shape
    (3,)
    """
    dims = as_axes("bcoo_squeeze", dimensions, arr.ndim)
    if any(arr.shape[d] != 1 for d in dims):
        raise ShapeError(f"bcoo_squeeze: dimensions {dims} of shape {arr.shape} must have size 1")
    first, last = arr.n_batch, arr.n_batch + arr.n_sparse
    batch = [d for d in dims if d < first]
    valid = within(arr.indices, arr.sparse_shape)
    data = lax.squeeze(masked(arr.data, valid), [*batch, *(d - last + first + 1 for d in dims if d >= last)])
    found = columns(padded(arr.indices, valid, arr.sparse_shape))
    left = [c for d, c in enumerate(found, first) if d not in dims]
    indices = lax.squeeze(rows_of(left, arr.indices), batch)
    return arr.like(data, indices, tuple(n for d, n in enumerate(arr.shape) if d not in dims))


@takes_sparse
@composite(static=("dimensions",))
def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with its elements in reverse order along these dimensions.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_rev(eye(2), (0,)).indices
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    dims = as_axes("bcoo_rev", dimensions, operand.ndim)
    first, last = operand.n_batch, operand.n_batch + operand.n_sparse
    batch = [d for d in dims if d < first]
    data = lax.rev(operand.data, [*batch, *(d - last + first + 1 for d in dims if d >= last)])
    indices = lax.rev(operand.indices, batch)
    sizes, found = operand.sparse_shape, columns(indices)
    rows = [n - 1 - c if d in dims else c for d, (c, n) in enumerate(zip(found, sizes, strict=True), first)]
    moved = padded(rows_of(rows, indices), within(indices, sizes), sizes)
    return operand.like(data, moved, unique_indices=operand.unique_indices)
