"""Products: bcoo_dot_general and bcoo_dot_general_sampled.

With a dense array, each entry of the sparse one is multiplied by a slice, and added to the result at its row. Of two
sparse arrays all pairs of entries are multiplied: the number of entries of a result is static, so it is the number of
pairs, or of all places if those are fewer.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xlamini import lax, numpy as jnp
from xlamini.core import aval_of
from xlamini.experimental.sparse.array import JAXSparse
from xlamini.experimental.sparse.conversion import extracted
from xlamini.experimental.sparse.duplicates import bcoo_sum_duplicates
from xlamini.experimental.sparse.entries import (
    added_at,
    columns,
    fitting,
    full_batch,
    mapped,
    masked,
    padded,
    picked_columns,
    rows_of,
    values_at,
    within,
)
from xlamini.experimental.sparse.layouts import with_layout
from xlamini.experimental.sparse.shapes import bcoo_transpose
from xlamini.lax import DotDimensionNumbers
from xlamini.primitives.products.dot_general import canonical_numbers, check_numbers
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO

Join = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, list[Any]]]
"""From the columns of both entries of pairs: which pairs count, and the columns of their products."""


def bcoo_dot_general(
    lhs: BCOO | ArrayLike,
    rhs: BCOO | ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> BCOO | Array:
    """The product of two arrays as `lax.dot_general`, dense unless both are sparse.

    `dimension_numbers` is `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`. Batch dimensions must be ones
    of the sparse array's layout (else NotImplementedError). A product of two sparse arrays takes time and memory for
    each pair of their entries. `precision` and `out_sharding` concern dense products alone. ShapeError for sizes that
    differ.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_dot_general(eye(2), jnp.array([3.0, 4.0]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([3., 4.], dtype=float32)
    """
    numbers = _checked_numbers("bcoo_dot_general", lhs, rhs, dimension_numbers)
    of_dtype = {"preferred_element_type": preferred_element_type}
    if not isinstance(rhs, JAXSparse):
        if isinstance(lhs, JAXSparse):
            return _sparse_dense(lhs, jnp.asarray(rhs), numbers=numbers, **of_dtype)
        return lax.dot_general(lhs, rhs, numbers, precision, out_sharding=out_sharding, **of_dtype)
    if isinstance(lhs, JAXSparse):
        return _sparse_sparse(lhs, rhs, numbers=numbers, **of_dtype)
    return _dense_sparse(jnp.asarray(lhs), rhs, numbers=numbers, **of_dtype)


def _checked_numbers(name: str, lhs: Any, rhs: Any, dimension_numbers: Any) -> DotDimensionNumbers:
    """The dimension numbers as tuples; ShapeError where the operands do not have these dimensions, or other sizes."""
    numbers = canonical_numbers(name, dimension_numbers)
    left, right = (aval_of(x if isinstance(x, JAXSparse) else jnp.asarray(x)) for x in (lhs, rhs))
    check_numbers(name, left, right, numbers)
    return numbers


@composite(static=("numbers", "preferred_element_type"))
def _dense_sparse(lhs: Array, rhs: BCOO, *, numbers: DotDimensionNumbers, preferred_element_type: Any) -> Array:
    """The product with the operands exchanged, then the result's dimensions."""
    (lhs_along, rhs_along), (lhs_batch, rhs_batch) = numbers
    swapped = (rhs_along, lhs_along), (rhs_batch, lhs_batch)
    out = _sparse_dense(rhs, lhs, numbers=swapped, preferred_element_type=preferred_element_type)
    n_batch, n_lhs = len(lhs_batch), lhs.ndim - len(lhs_batch) - len(lhs_along)
    of_lhs = range(out.ndim - n_lhs, out.ndim)
    return lax.transpose(out, [*range(n_batch), *of_lhs, *range(n_batch, out.ndim - n_lhs)])


@composite(static=("numbers", "preferred_element_type"))
def _sparse_dense(lhs: BCOO, rhs: Array, *, numbers: DotDimensionNumbers, preferred_element_type: Any) -> Array:
    (lhs_along, rhs_along), (lhs_batch, rhs_batch) = numbers
    _check_batch(lhs, lhs_batch)
    if any(d >= lhs.ndim - lhs.n_dense for d in lhs_along):
        lhs = with_layout(lhs, n_batch=lhs.n_batch, n_dense=0)
    first, contracted = lhs.n_batch, dict(zip(lhs_along, rhs_along, strict=True))
    free = _free_dims(first, lhs_batch, lhs_along)
    summed, along = [d for d in lhs_along if d < first], [d for d in lhs_along if d >= first]
    order = (*lhs_batch, *free, *summed)
    of_rhs = (contracted[d] for d in (*summed, *along))
    rhs = lax.transpose(rhs, [*rhs_batch, *of_rhs, *_free_dims(rhs.ndim, rhs_batch, rhs_along)])
    rhs = lax.expand_dims(rhs, range(len(lhs_batch), len(lhs_batch) + len(free)))

    def product(data: Any, rows: Any, rhs: Any) -> Any:
        return _one_product(data, rows, rhs, [d - first for d in along], lhs.sparse_shape)

    dtype = preferred_element_type or jnp.result_type(lhs.data, rhs)
    data = full_batch(lhs.data.astype(dtype), lhs.shape[:first])
    buffers = [lax.transpose(x, (*order, *range(first, x.ndim))) for x in (data, lhs.indices)]
    return mapped(product, first, *buffers, rhs.astype(dtype)).sum(
        range(len(order) - len(summed), len(order)), dtype=dtype
    )


def _one_product(data: Any, rows: Any, rhs: Any, along: Sequence[int], sizes: Sequence[int]) -> Any:
    """The product for one batch: sparse dimensions `along` are contracted with the first dimensions of `rhs`."""
    free = _free_dims(len(sizes), along)
    data = masked(data, within(rows, sizes))
    picked = values_at(rhs, picked_columns(rows, along))
    if not free:
        return lax.dot_general(data, picked, (((0,), (0,)), ((), ())))
    terms = lax.expand_dims(data, range(data.ndim, data.ndim + picked.ndim - 1)) * lax.expand_dims(
        picked, range(1, data.ndim)
    )
    return added_at(picked_columns(rows, free), terms, (*(sizes[d] for d in free), *terms.shape[1:]))


@composite(static=("dimension_numbers",))
def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: Array, *, dimension_numbers: DotDimensionNumbers
) -> Array:
    """The elements of the product of two dense arrays at rows of indices.

    `indices` has shape `(*batch, nse, n_sparse)`. Where it has a column for each dimension of the result, only these
    elements are computed.

    >>> bcoo_dot_general_sampled(
    ...     jnp.ones((2, 3)), jnp.ones((3, 2)), jnp.array([[0, 1]]), dimension_numbers=(((1,), (0,)), ((), ()))
    ... )
    Array([3.], dtype=float32)
    """
    lhs, rhs = (x.astype(jnp.result_type(A, B)) for x in (jnp.asarray(A), jnp.asarray(B)))
    numbers, n_batch = _checked_numbers("bcoo_dot_general_sampled", lhs, rhs, dimension_numbers), indices.ndim - 2
    (lhs_along, rhs_along), (lhs_batch, rhs_batch) = numbers
    of_lhs, of_rhs = _free_dims(lhs.ndim, lhs_batch, lhs_along), _free_dims(rhs.ndim, rhs_batch, rhs_along)
    if n_batch != len(lhs_batch) or indices.shape[-1] != len(of_lhs) + len(of_rhs):
        return extracted(indices, lax.dot_general(lhs, rhs, numbers), assume_unique=True)

    def sampled(rows: Any, a: Any, b: Any) -> Any:
        terms = values_at(a, rows[:, : len(of_lhs)]) * values_at(b, rows[:, len(of_lhs) :])
        return terms.sum(range(1, terms.ndim))

    a, b = lax.transpose(lhs, (*lhs_batch, *of_lhs, *lhs_along)), lax.transpose(rhs, (*rhs_batch, *of_rhs, *rhs_along))
    return mapped(sampled, n_batch, indices, a, b)


def joined(lhs: BCOO, rhs: BCOO, join: Join, sizes: tuple[int, ...], dtype: Any = None) -> BCOO:
    """The products of all pairs of entries that `join` selects, in an array whose sparse dimensions have these sizes.

    Both arrays have the same batch dimensions and no dense ones.
    """
    dtype = dtype or jnp.result_type(lhs.data, rhs.data)

    def products(left: Any, left_rows: Any, right: Any, right_rows: Any) -> tuple[Any, Any]:
        counts, found = join(columns(left_rows[:, None]), columns(right_rows[None]))
        valid = within(left_rows, lhs.sparse_shape)[:, None] & within(right_rows, rhs.sparse_shape) & counts
        rows = padded(rows_of(found, valid.shape, fitting(left_rows.dtype, sizes)), sizes, valid)
        data = masked(left[:, None].astype(dtype) * right.astype(dtype), valid)
        return data.ravel(), rows.reshape((valid.size, len(sizes)))

    data, indices = mapped(products, lhs.n_batch, lhs.data, lhs.indices, rhs.data, rhs.indices)
    shape = (*jnp.broadcast_shapes(lhs.shape[: lhs.n_batch], rhs.shape[: rhs.n_batch]), *sizes)
    return bcoo_sum_duplicates(lhs.like(data, indices, shape), nse=min(lhs.nse * rhs.nse, math.prod(sizes)))


@composite(static=("numbers", "preferred_element_type"))
def _sparse_sparse(lhs: BCOO, rhs: BCOO, *, numbers: DotDimensionNumbers, preferred_element_type: Any) -> BCOO:
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
    _check_batch(mat, batch)
    order = (*batch, *_free_dims(mat.ndim, batch))
    new = with_layout(bcoo_transpose(mat, permutation=order), n_batch=len(batch), n_dense=0)
    contracted = [order.index(d) - len(batch) for d in along]
    return new, contracted, _free_dims(new.n_sparse, contracted)


def _free_dims(ndim: int, *taken: Sequence[int]) -> list[int]:
    """The dimensions that are neither contracted nor batch dimensions of a product."""
    return [d for d in range(ndim) if not any(d in dims for dims in taken)]


def _check_batch(mat: BCOO, batch: Sequence[int]) -> None:
    """NotImplementedError unless the batch dimensions of a product are ones of the array's layout."""
    if any(d >= mat.n_batch for d in batch):
        raise NotImplementedError(
            f"bcoo_dot_general: batch dimensions {tuple(batch)} of {mat!r} must be batch dimensions of its layout; "
            "call update_layout(n_batch=...) first"
        )
