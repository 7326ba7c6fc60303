"""Products with dense arrays: bcoo_dot_general and bcoo_dot_general_sampled.

Each entry of the sparse array is multiplied by a slice of the dense one, and added to the result at its row.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
from xlamini.experimental.sparse.pairs import product_of_sparse
from xlamini.lax import DotDimensionNumbers
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


class DotDims(NamedTuple):
    """The dimensions of a product: those that are contracted, and those that are batch dimensions of both operands."""

    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]

    def swapped(self) -> DotDims:
        return DotDims(self.rhs_contracting, self.lhs_contracting, self.rhs_batch, self.lhs_batch)

    def numbers(self) -> Any:
        return (self.lhs_contracting, self.rhs_contracting), (self.lhs_batch, self.rhs_batch)


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
    dims = _dims(lhs, rhs, dimension_numbers)
    of_dtype = {"preferred_element_type": preferred_element_type}
    if not isinstance(rhs, JAXSparse):
        if isinstance(lhs, JAXSparse):
            return _sparse_dense(lhs, jnp.asarray(rhs), dims=dims, **of_dtype)
        return lax.dot_general(lhs, rhs, dims.numbers(), precision, out_sharding=out_sharding, **of_dtype)
    if isinstance(lhs, JAXSparse):
        return product_of_sparse(lhs, rhs, numbers=dims.numbers(), **of_dtype)
    return _dense_sparse(jnp.asarray(lhs), rhs, dims=dims, **of_dtype)


def _dims(lhs: Any, rhs: Any, dimension_numbers: Any) -> DotDims:
    """The dimensions; ShapeError where their sizes differ."""
    (lc, rc), (lb, rb) = dimension_numbers
    dims = DotDims(*(tuple(map(int, d)) for d in (lc, rc, lb, rb)))
    left, right = (x.shape if isinstance(x, JAXSparse) else jnp.shape(x) for x in (lhs, rhs))
    sizes = [[shape[d] for d in of] for shape, of in zip((left, right, left, right), dims, strict=True)]
    if sizes[0] != sizes[1] or sizes[2] != sizes[3]:
        raise ShapeError(
            f"dot_general: shapes {left} and {right} do not fit: contracting dimensions {lc} and {rc} must have the "
            f"same sizes, and so must batch dimensions {lb} and {rb}"
        )
    return dims


@composite(static=("dims", "preferred_element_type"))
def _dense_sparse(lhs: Array, rhs: BCOO, *, dims: DotDims, preferred_element_type: Any) -> Array:
    """The product with the operands exchanged, then the result's dimensions."""
    out = _sparse_dense(rhs, lhs, dims=dims.swapped(), preferred_element_type=preferred_element_type)
    n_batch, n_lhs = len(dims.lhs_batch), lhs.ndim - len(dims.lhs_batch) - len(dims.lhs_contracting)
    of_lhs = range(out.ndim - n_lhs, out.ndim)
    return lax.transpose(out, [*range(n_batch), *of_lhs, *range(n_batch, out.ndim - n_lhs)])


@composite(static=("dims", "preferred_element_type"))
def _sparse_dense(lhs: BCOO, rhs: Array, *, dims: DotDims, preferred_element_type: Any) -> Array:
    if any(d >= lhs.n_batch for d in dims.lhs_batch):
        raise NotImplementedError(
            f"bcoo_dot_general: batch dimensions {dims.lhs_batch} of {lhs!r} must be batch dimensions of its layout; "
            "call update_layout(n_batch=...) first"
        )
    if any(d >= lhs.ndim - lhs.n_dense for d in dims.lhs_contracting):
        lhs = with_layout(lhs, n_batch=lhs.n_batch, n_dense=0)
    first, contracted = lhs.n_batch, dict(zip(dims.lhs_contracting, dims.rhs_contracting, strict=True))
    summed = [d for d in contracted if d < first]
    free = [d for d in range(first) if d not in dims.lhs_batch and d not in contracted]
    order = (*dims.lhs_batch, *free, *summed)
    along = [d for d in contracted if d >= first]
    others = [d for d in range(rhs.ndim) if d not in dims.rhs_batch and d not in dims.rhs_contracting]
    rhs = lax.transpose(rhs, [*dims.rhs_batch, *(contracted[d] for d in (*summed, *along)), *others])
    rhs = lax.expand_dims(rhs, range(len(dims.lhs_batch), len(dims.lhs_batch) + len(free)))

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
    free = [d for d in range(len(sizes)) if d not in along]
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
    dims, n_batch = _dims(lhs, rhs, dimension_numbers), indices.ndim - 2
    free = [
        [d for d in range(x.ndim) if d not in batch and d not in contracting]
        for x, batch, contracting in ((lhs, dims[2], dims[0]), (rhs, dims[3], dims[1]))
    ]
    if n_batch != len(dims.lhs_batch) or indices.shape[-1] != len(free[0]) + len(free[1]):
        return extracted(indices, lax.dot_general(lhs, rhs, dims.numbers()), assume_unique=True)

    def sampled(rows: Any, a: Any, b: Any) -> Any:
        terms = values_at(a, rows[:, : len(free[0])]) * values_at(b, rows[:, len(free[0]) :])
        return terms.sum(range(1, terms.ndim))

    a = lax.transpose(lhs, (*dims.lhs_batch, *free[0], *dims.lhs_contracting))
    b = lax.transpose(rhs, (*dims.rhs_batch, *free[1], *dims.rhs_contracting))
    return mapped(sampled, n_batch, indices, a, b)
