"""Arrays one after the other: bcoo_concatenate."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xlamini import numpy as jnp
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.batches import full_batch
from xlamini.experimental.sparse.entries import columns, padded, rows_of, within
from xlamini.numpy.arguments import as_axis
from xlamini.staging import composite

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


@takes_sparse
@composite(static=("dimension",))
def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The arrays one after the other along a batch or sparse dimension.

    ValueError for arrays that differ in another dimension or in layout; NotImplementedError for a dense dimension.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_concatenate([eye(2), eye(2)], dimension=0).indices[:, 0]
    Array([0, 1, 2, 3], dtype=int32)
    """
    first, axis = operands[0], as_axis("bcoo_concatenate", dimension, operands[0].ndim)
    _check_concatenable(operands, axis)
    total = sum(x.shape[axis] for x in operands)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    if axis < first.n_batch:
        nse = max(x.nse for x in operands)
        buffers = [_with_nse(x, nse) for x in operands]
    else:
        starts = itertools.accumulate((x.shape[axis] for x in operands), initial=0)
        sizes = shape[first.n_batch : first.ndim - first.n_dense]
        buffers = [
            _shifted(x, axis - first.n_batch, start, sizes) for x, start in zip(operands, starts, strict=False)
        ]
    data, indices = (jnp.concatenate(x, min(axis, first.n_batch)) for x in zip(*buffers, strict=True))
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
    axis, missing = mat.n_batch, nse - mat.nse
    data, indices = (full_batch(x, mat.shape[:axis]) for x in (mat.data, mat.indices))
    widths = [(0, missing if d == axis else 0) for d in range(data.ndim)]
    padding = jnp.broadcast_to(jnp.array(mat.sparse_shape, indices.dtype), (*mat.shape[:axis], missing, mat.n_sparse))
    return jnp.pad(data, widths), jnp.concatenate([indices, padding], axis)


def _shifted(mat: BCOO, dim: int, start: int, sizes: Sequence[int]) -> tuple[Any, Any]:
    """The buffers, with the indices along a sparse dimension counted from `start`, within an array of these sizes."""
    valid, found = within(mat.indices, mat.sparse_shape), columns(mat.indices)
    rows = rows_of([c + start if d == dim else c for d, c in enumerate(found)], mat.indices)
    batch = mat.shape[: mat.n_batch]
    return full_batch(mat.data, batch), full_batch(padded(rows, valid, sizes), batch)
