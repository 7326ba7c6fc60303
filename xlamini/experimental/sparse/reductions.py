"""Sums along dimensions: bcoo_reduce_sum."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xlamini import lax
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.batches import full_batch
from xlamini.experimental.sparse.entries import masked, padded, picked_columns, within
from xlamini.numpy.arguments import as_axes
from xlamini.staging import composite

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


@takes_sparse
@composite(static=("axes",))
def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum along dimensions, as a sparse array with duplicate indices.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_reduce_sum(eye(3), axes=(0,)).todense()
    Array([1., 1., 1.], dtype=float32)
    """
    reduced = as_axes("bcoo_reduce_sum", axes, mat.ndim)
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    valid = within(mat.indices, mat.sparse_shape)
    data = full_batch(masked(mat.data, valid), mat.shape[:first])
    data = data.sum([d - last + first + 1 for d in reduced if d >= last], dtype=mat.dtype)
    indices = full_batch(padded(mat.indices, valid, mat.sparse_shape), mat.shape[:first])
    left = picked_columns(indices, [d - first for d in range(first, last) if d not in reduced])
    kept = [d for d in range(first) if d not in reduced]
    summed = [d for d in range(first) if d in reduced]
    merged = [*(mat.shape[d] for d in kept), math.prod(mat.shape[d] for d in summed) * mat.nse]

    def merge(x: Any) -> Any:
        order = (*kept, *summed, *range(first, x.ndim))
        return lax.transpose(x, order).reshape((*merged, *x.shape[first + 1 :]))

    return mat.like(merge(data), merge(left), tuple(n for d, n in enumerate(mat.shape) if d not in reduced))
