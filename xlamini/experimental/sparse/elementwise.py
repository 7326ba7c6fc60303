"""Products and sums of elements: bcoo_multiply_dense, bcoo_multiply_sparse and the addition of sparse arrays."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.experimental.sparse.arguments import takes_sparse
from xlamini.experimental.sparse.duplicates import lookup
from xlamini.experimental.sparse.entries import mapped, masked, picked_columns, values_at, within
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

if TYPE_CHECKING:
    from xlamini.experimental.sparse.bcoo import BCOO


@takes_sparse
@composite()
def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """The data of the elementwise product with a dense array, which is broadcast to the shape of `sp_mat`.

    ShapeError where it cannot be.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_multiply_dense(eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    return sp_mat.data * dense_at(sp_mat, v)


def dense_at(mat: BCOO, dense: ArrayLike, fill: Any = 0) -> Array:
    """The elements of a dense array at the indices of `mat`, to whose shape it is broadcast; `fill` for padding."""
    v = jnp.asarray(dense)
    fits = v.ndim <= mat.ndim and all(
        n in (1, m) for n, m in zip(v.shape, mat.shape[mat.ndim - v.ndim :], strict=True)
    )
    if not fits:
        raise ShapeError(
            f"a dense array of shape {v.shape} cannot be broadcast to the shape {mat.shape} of a sparse array; "
            "make the sparse array larger with bcoo_broadcast_in_dim"
        )
    if not v.ndim:
        return v
    v = v.reshape((1,) * (mat.ndim - v.ndim) + v.shape)
    return mapped(lambda rows, x: _broadcast_values(rows, x, mat.n_sparse, fill), mat.n_batch, mat.indices, v)


def _broadcast_values(rows: Any, v: Any, n_sparse: int, fill: Any) -> Any:
    """The elements of `v` at rows of indices; along sparse dimensions of size 1 every index has the one element."""
    along = [d for d in range(n_sparse) if v.shape[d] != 1]
    v = jnp.squeeze(v, [d for d in range(n_sparse) if d not in along])
    return values_at(v, picked_columns(rows, along), fill)


@takes_sparse
@composite()
def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays of one shape and layout, with the indices of the smaller one.

    ShapeError for other shapes; ValueError for other layouts.

    >>> from xlamini.experimental.sparse import eye
    >>> bcoo_multiply_sparse(eye(2) * 3.0, eye(2)).todense()
    Array([[3., 0.],
           [0., 3.]], dtype=float32)
    """
    check_alike("bcoo_multiply_sparse", lhs, rhs)
    few, many = (rhs, lhs) if rhs.nse < lhs.nse else (lhs, rhs)

    def product(indices: Any, data: Any, others: Any, other_data: Any) -> Any:
        return masked(data * lookup(others, other_data, indices), within(indices, few.sparse_shape))

    return few.with_data(mapped(product, few.n_batch, few.indices, few.data, many.indices, many.data))


def check_alike(name: str, lhs: BCOO, rhs: BCOO) -> None:
    """ShapeError for sparse arrays of different shapes, ValueError for different layouts."""
    if lhs.shape != rhs.shape:
        raise ShapeError(f"{name}: sparse arrays must have one shape, got {lhs.shape} and {rhs.shape}")
    left, right = ((x.n_batch, x.n_dense) for x in (lhs, rhs))
    if left != right:
        raise ValueError(
            f"{name}: sparse arrays must have the same n_batch and n_dense, got {left} and {right}; call update_layout"
        )


def add_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The sum of two sparse arrays of one shape and layout: the entries of both."""
    check_alike("add", lhs, rhs)
    data, indices = (jnp.concatenate(pair, lhs.n_batch) for pair in zip(lhs.full(), rhs.full(), strict=True))
    return lhs.like(data, indices)
