"""Pairs of entries of two sparse arrays: what products with each other and convolutions are made of.

The number of entries of a result is static, so it is the number of all pairs, or of all places if those are fewer.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xlamini import numpy as jnp
from xlamini.experimental.sparse.duplicates import bcoo_sum_duplicates
from xlamini.experimental.sparse.entries import columns, mapped, masked, padded, rows_of, within
from xlamini.experimental.sparse.layouts import with_layout
from xlamini.experimental.sparse.shapes import bcoo_transpose
from xlamini.staging import composite

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO

Numbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]
"""`((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`"""
Join = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, list[Any]]]
"""From the columns of both entries of pairs: which pairs count, and the columns of their products."""


def joined(lhs: BCOO, rhs: BCOO, join: Join, sizes: tuple[int, ...], dtype: Any = None) -> BCOO:
    """The products of all pairs of entries that `join` selects, in an array whose sparse dimensions have these sizes.

    Both arrays have the same batch dimensions and no dense ones.
    """
    dtype = dtype or jnp.result_type(lhs.data, rhs.data)

    def products(left: Any, left_rows: Any, right: Any, right_rows: Any) -> tuple[Any, Any]:
        counts, found = join(columns(left_rows[:, None]), columns(right_rows[None]))
        valid = within(left_rows, lhs.sparse_shape)[:, None] & within(right_rows, rhs.sparse_shape) & counts
        rows = padded(rows_of(found, valid.shape, left_rows.dtype), sizes, valid)
        data = masked(left[:, None].astype(dtype) * right.astype(dtype), valid)
        return data.ravel(), rows.reshape((valid.size, len(sizes)))

    data, indices = mapped(products, lhs.n_batch, lhs.data, lhs.indices, rhs.data, rhs.indices)
    shape = (*jnp.broadcast_shapes(lhs.shape[: lhs.n_batch], rhs.shape[: rhs.n_batch]), *sizes)
    return bcoo_sum_duplicates(lhs.like(data, indices, shape), nse=min(lhs.nse * rhs.nse, math.prod(sizes)))


@composite(static=("numbers", "preferred_element_type"))
def product_of_sparse(lhs: BCOO, rhs: BCOO, *, numbers: Numbers, preferred_element_type: Any) -> BCOO:
    """The product of two sparse arrays; batch dimensions of the layout that are not of the product become sparse."""
    (lhs_along, rhs_along), (lhs_batch, rhs_batch) = numbers
    left, left_along, left_free = _arranged(lhs, lhs_batch, lhs_along)
    right, right_along, right_free = _arranged(rhs, rhs_batch, rhs_along)

    def join(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        counts = jnp.ones((1, 1), bool)
        for i, k in zip(left_along, right_along, strict=True):
            counts &= a[i] == b[k]
        return counts, [*(a[i] for i in left_free), *(b[i] for i in right_free)]

    sizes = (*(left.sparse_shape[i] for i in left_free), *(right.sparse_shape[i] for i in right_free))
    return joined(left, right, join, sizes, preferred_element_type)


def _arranged(mat: BCOO, batch: Sequence[int], along: Sequence[int]) -> tuple[BCOO, list[int], list[int]]:
    """The array with just these batch dimensions, all others sparse; the sparse ones contracted, and the free ones."""
    check_batch(mat, batch)
    order = (*batch, *free_dims(mat.ndim, batch))
    new = with_layout(bcoo_transpose(mat, permutation=order), n_batch=len(batch), n_dense=0)
    contracted = [order.index(d) - len(batch) for d in along]
    return new, contracted, free_dims(new.n_sparse, contracted)


def free_dims(ndim: int, *taken: Sequence[int]) -> list[int]:
    """The dimensions that are neither contracted nor batch dimensions of a product."""
    return [d for d in range(ndim) if not any(d in dims for dims in taken)]


def check_batch(mat: BCOO, batch: Sequence[int]) -> None:
    """NotImplementedError unless the batch dimensions of a product are ones of the array's layout."""
    if any(d >= mat.n_batch for d in batch):
        raise NotImplementedError(
            f"bcoo_dot_general: batch dimensions {tuple(batch)} of {mat!r} must be batch dimensions of its layout; "
            "call update_layout(n_batch=...) first"
        )
