"""Products with dense arrays: bcoo_dot_general and bcoo_dot_general_sampled.

Each entry of the sparse array is multiplied by a slice of the dense one, and added to the result at its row.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xlamini import lax, numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.sparse.array import JAXSparse
from xlamini.experimental.sparse.conversion import extracted
from xlamini.experimental.sparse.entries import (
    added_at,
    full_batch,
    mapped,
    masked,
    picked_columns,
    values_at,
    within,
)
from xlamini.experimental.sparse.layouts import with_layout
from xlamini.experimental.sparse.pairs import Numbers, check_batch, free_dims, product_of_sparse
from xlamini.lax import DotDimensionNumbers
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


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
    numbers = _checked_numbers(lhs, rhs, dimension_numbers)
    of_dtype = {"preferred_element_type": preferred_element_type}
    if not isinstance(rhs, JAXSparse):
        if isinstance(lhs, JAXSparse):
            return _sparse_dense(lhs, jnp.asarray(rhs), numbers=numbers, **of_dtype)
        return lax.dot_general(lhs, rhs, numbers, precision, out_sharding=out_sharding, **of_dtype)
    if isinstance(lhs, JAXSparse):
        return product_of_sparse(lhs, rhs, numbers=numbers, **of_dtype)
    return _dense_sparse(jnp.asarray(lhs), rhs, numbers=numbers, **of_dtype)


def _checked_numbers(lhs: Any, rhs: Any, dimension_numbers: Any) -> Numbers:
    """The dimension numbers as tuples; ShapeError where the sizes differ."""
    left, right = jnp.shape(lhs), jnp.shape(rhs)
    along, batch = ((tuple(map(int, of_lhs)), tuple(map(int, of_rhs))) for of_lhs, of_rhs in dimension_numbers)
    if any([left[d] for d in of_lhs] != [right[d] for d in of_rhs] for of_lhs, of_rhs in (along, batch)):
        raise ShapeError(
            f"dot_general: shapes {left} and {right} do not fit: contracting dimensions {along[0]} and {along[1]} must "
            f"have the same sizes, and so must batch dimensions {batch[0]} and {batch[1]}"
        )
    return along, batch


@composite(static=("numbers", "preferred_element_type"))
def _dense_sparse(lhs: Array, rhs: BCOO, *, numbers: Numbers, preferred_element_type: Any) -> Array:
    """The product with the operands exchanged, then the result's dimensions."""
    (along, batch), preferred = numbers, preferred_element_type
    out = _sparse_dense(rhs, lhs, numbers=(along[::-1], batch[::-1]), preferred_element_type=preferred)
    n_batch, n_lhs = len(batch[0]), lhs.ndim - len(batch[0]) - len(along[0])
    of_lhs = range(out.ndim - n_lhs, out.ndim)
    return lax.transpose(out, [*range(n_batch), *of_lhs, *range(n_batch, out.ndim - n_lhs)])


@composite(static=("numbers", "preferred_element_type"))
def _sparse_dense(lhs: BCOO, rhs: Array, *, numbers: Numbers, preferred_element_type: Any) -> Array:
    (lhs_along, rhs_along), (lhs_batch, rhs_batch) = numbers
    check_batch(lhs, lhs_batch)
    if any(d >= lhs.ndim - lhs.n_dense for d in lhs_along):
        lhs = with_layout(lhs, n_batch=lhs.n_batch, n_dense=0)
    first, contracted = lhs.n_batch, dict(zip(lhs_along, rhs_along, strict=True))
    free = free_dims(first, lhs_batch, lhs_along)
    summed, along = [d for d in lhs_along if d < first], [d for d in lhs_along if d >= first]
    order = (*lhs_batch, *free, *summed)
    of_rhs = (contracted[d] for d in (*summed, *along))
    rhs = lax.transpose(rhs, [*rhs_batch, *of_rhs, *free_dims(rhs.ndim, rhs_batch, rhs_along)])
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
    free = free_dims(len(sizes), along)
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
    numbers, n_batch = _checked_numbers(lhs, rhs, dimension_numbers), indices.ndim - 2
    (lhs_along, rhs_along), (lhs_batch, rhs_batch) = numbers
    of_lhs, of_rhs = free_dims(lhs.ndim, lhs_batch, lhs_along), free_dims(rhs.ndim, rhs_batch, rhs_along)
    if n_batch != len(lhs_batch) or indices.shape[-1] != len(of_lhs) + len(of_rhs):
        return extracted(indices, lax.dot_general(lhs, rhs, numbers), assume_unique=True)

    def sampled(rows: Any, a: Any, b: Any) -> Any:
        terms = values_at(a, rows[:, : len(of_lhs)]) * values_at(b, rows[:, len(of_lhs) :])
        return terms.sum(range(1, terms.ndim))

    a, b = lax.transpose(lhs, (*lhs_batch, *of_lhs, *lhs_along)), lax.transpose(rhs, (*rhs_batch, *of_rhs, *rhs_along))
    return mapped(sampled, n_batch, indices, a, b)
