"""Arrays of other shapes: transposed, reshaped, squeezed, reversed, summed, broadcast and concatenated."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xlamini import lax, numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.entries import (
    columns,
    fitting,
    masked,
    padded,
    picked_columns,
    rows_of,
    unraveled,
    within,
)
from xlamini.numpy.arguments import as_axes, as_axis
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
    data = lax.transpose(mat.data, (*batch, first, *mat.data_axes(dense)))
    indices = lax.transpose(mat.indices, (*batch, first, first + 1))
    moved = picked_columns(indices, [d - first for d in sparse])
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
    batch, sparse, dense = split_shape(sizes, n_batch, n_dense)
    data, indices = mat.full()
    rows = unraveled(_places(indices, mat.sparse_shape), sparse, indices.dtype)
    buffers = data.reshape((*batch, mat.nse, *dense)), rows.reshape((*batch, mat.nse, len(sparse)))
    return mat.like(*buffers, sizes, **mat.flags)


def split_shape(shape: Sequence[int], n_batch: int, n_dense: int) -> tuple[tuple[int, ...], ...]:
    """The sizes of the batch, the sparse and the dense dimensions."""
    sizes, dense_from = tuple(shape), len(shape) - n_dense
    return sizes[:n_batch], sizes[n_batch:dense_from], sizes[dense_from:]


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
    return bcoo_reduce_sum(arr, axes=dims)


@takes_sparse
@composite(static=("axes",))
def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum along dimensions, as a sparse array with duplicate indices.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_reduce_sum(eye(3), axes=(0,)).todense()
    Array([1., 1., 1.], dtype=float32)
    """
    reduced, first, last = as_axes("bcoo_reduce_sum", axes, mat.ndim), mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = mat.full() if any(d < first for d in reduced) else (mat.data, mat.indices)
    valid = within(indices, mat.sparse_shape)
    data = masked(data, valid).sum(mat.data_axes(d for d in reduced if d >= last), dtype=mat.dtype)
    left = [d - first for d in range(first, last) if d not in reduced]
    indices = picked_columns(padded(indices, mat.sparse_shape, valid), left)
    kept = [d for d in range(first) if d not in reduced]
    summed = [d for d in range(first) if d in reduced]

    def merge(x: Any) -> Any:
        x = lax.transpose(x, (*kept, *summed, *range(first, x.ndim)))
        return x.reshape((*x.shape[: len(kept)], math.prod(x.shape[len(kept) : first + 1]), *x.shape[first + 1 :]))

    return mat.like(merge(data), merge(indices), tuple(n for d, n in enumerate(mat.shape) if d not in reduced))


@takes_sparse
@composite(static=("dimensions",))
def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with its elements in reverse order along these dimensions.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_rev(eye(2), (0,)).indices
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    dims, first, sizes = as_axes("bcoo_rev", dimensions, operand.ndim), operand.n_batch, operand.sparse_shape
    data = lax.rev(operand.data, operand.data_axes(dims))
    indices = lax.rev(operand.indices, [d for d in dims if d < first])
    found = enumerate(zip(columns(indices), sizes, strict=True), first)
    rows = rows_of([n - 1 - c if d in dims else c for d, (c, n) in found], indices.shape[:-1], indices.dtype)
    moved = padded(rows, sizes, within(indices, sizes))
    return operand.like(data, moved, unique_indices=operand.unique_indices)


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
    _check_broadcast(mat, shape, dims)
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    dense_from = dims[last] if mat.n_dense else len(shape)
    n_batch = dims[first] if mat.n_sparse else dense_from
    batch, sparse, dense = split_shape(shape, n_batch, len(shape) - dense_from)
    data, indices = _repeated(mat, sparse, {d - n_batch: i for i, d in enumerate(dims[first:last])})
    entries, of_entries = (*batch, indices.shape[first]), (*dims[:first], n_batch)
    of_dense = tuple(d - dense_from + n_batch + 1 for d in dims[last:])
    data = lax.broadcast_in_dim(data, (*entries, *dense), (*of_entries, *of_dense))
    indices = lax.broadcast_in_dim(indices, (*entries, len(sparse)), (*of_entries, n_batch + 1))
    return mat.like(data, indices, tuple(shape))


def _check_broadcast(mat: BCOO, shape: Sequence[int], dims: tuple[int, ...]) -> None:
    fits = len(dims) == mat.ndim and sorted({*dims}) == list(dims) and all(0 <= d < len(shape) for d in dims)
    if not fits or any(shape[d] != n and n != 1 for d, n in zip(dims, mat.shape, strict=True)):
        raise ShapeError(
            f"bcoo_broadcast_in_dim: shape {mat.shape} cannot become the dimensions {dims} of shape {tuple(shape)}"
        )


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
    new = columns(jnp.tile(unraveled(jnp.arange(times), repeats, indices.dtype), (mat.nse, 1)))
    rows = [new[d] if is_new[d] else found[origin[d]] for d in range(len(sizes))]
    rows = rows_of(rows, indices.shape[:-1], fitting(indices.dtype, sizes))
    return jnp.repeat(mat.data, times, axis), padded(rows, sizes, within(indices, old))


@takes_sparse
@composite(static=("dimension",))
def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The arrays one after the other along a batch or sparse dimension.

    ValueError for no arrays, or arrays that differ in another dimension or in layout; NotImplementedError for a dense
    dimension.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_concatenate([eye(2), eye(2)], dimension=0).indices[:, 0]
    Array([0, 1, 2, 3], dtype=int32)
    """
    if not operands:
        raise ValueError("bcoo_concatenate: at least one array is needed, got none")
    first = operands[0]
    axis, n_batch = as_axis("bcoo_concatenate", dimension, first.ndim), first.n_batch
    _check_concatenable(operands, axis)
    ends = list(itertools.accumulate(x.shape[axis] for x in operands))
    shape = (*first.shape[:axis], ends[-1], *first.shape[axis + 1 :])
    if axis < n_batch:
        nse = max(x.nse for x in operands)
        buffers = [_with_nse(x, nse) for x in operands]
    else:
        sizes = split_shape(shape, n_batch, first.n_dense)[1]
        starts = zip(operands, [0, *ends[:-1]], strict=True)
        buffers = [_shifted(x, axis - n_batch, start, sizes) for x, start in starts]
    data, indices = (jnp.concatenate(x, min(axis, n_batch)) for x in zip(*buffers, strict=True))
    return first.like(data, indices, shape)


def _check_concatenable(operands: Sequence[BCOO], axis: int) -> None:
    layouts = {(x.n_batch, x.n_dense, x.shape[:axis], x.shape[axis + 1 :]) for x in operands}
    if len(layouts) > 1:
        raise ValueError(
            f"bcoo_concatenate: arrays must have one layout, and one shape but for dimension {axis}, got {operands!r}"
        )
    if axis >= operands[0].n_batch + operands[0].n_sparse:
        raise NotImplementedError(f"bcoo_concatenate: dimension {axis} is dense; call update_layout(n_dense=...) first")


def _with_nse(mat: BCOO, nse: int) -> tuple[Any, Any]:
    """The buffers, with padding up to this number of entries."""
    (data, indices), axis, missing = mat.full(), mat.n_batch, nse - mat.nse
    dtype = fitting(indices.dtype, mat.sparse_shape)
    widths = [(0, missing if d == axis else 0) for d in range(data.ndim)]
    padding = jnp.broadcast_to(jnp.array(mat.sparse_shape, dtype), (*mat.shape[:axis], missing, mat.n_sparse))
    return jnp.pad(data, widths), jnp.concatenate([indices, padding], axis)


def _shifted(mat: BCOO, dim: int, start: int, sizes: Sequence[int]) -> tuple[Any, Any]:
    """The buffers, with the indices along a sparse dimension counted from `start`, within an array of these sizes."""
    data, indices = mat.full()
    offsets = jnp.array([start if d == dim else 0 for d in range(mat.n_sparse)], fitting(indices.dtype, sizes))
    return data, padded(indices + offsets, sizes, within(indices, mat.sparse_shape))
