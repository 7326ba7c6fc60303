"""Matrices by their diagonals and triangles."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of, canonicalize_dtype, check_user_dtype
from xlamini.core.sizes.expression import as_size, is_symbolic_shape, max_size, min_size
from xlamini.numpy.arguments import as_axis, as_index, as_operand, refuse_out
from xlamini.numpy.indexing.take import take
from xlamini.numpy.reductions import sum
from xlamini.primitives import broadcast_in_dim, broadcasted_iota, convert, in_dtype, moveaxis, reshape, where
from xlamini.primitives.base import operators
from xlamini.primitives.linalg import stacks
from xlamini.primitives.shape.iota import iota
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.slice import slice
from xlamini.runtime import Array, device_put_value
from xlamini.staging import composite
from xlamini.transforms.sharding.device_put import device_put
from xlamini.typing import ArrayLike, DTypeLike

_INDEX = np.dtype(np.int32)


def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
) -> Array:
    """A matrix of N rows and M (or N) columns with ones on its k-th diagonal, zeros otherwise.

    >>> eye(2, 3, 1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    made = _matrix("eye", N, M, k, dtype, operators.equal)
    return made if device is None else device_put(made, device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix of n rows.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _matrix("identity", n, None, 0, dtype, operators.equal)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below its k-th diagonal, zeros above.

    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _matrix("tri", N, M, k, dtype, operators.less_equal)


def _matrix(name: str, rows: Any, columns: Any, k: Any, dtype: Any, relation: Any) -> Any:
    shape = (as_size(rows), as_size(rows if columns is None else columns))
    if shape[0] < 0 or shape[1] < 0:
        raise ValueError(f"{name}: a matrix has no negative number of rows or columns, got {shape}")
    wanted = canonicalize_dtype(float) if dtype is None else check_user_dtype(dtype, name)
    return _where_column(_diagonal_number(name, k), shape, relation, wanted)


def _diagonal_number(name: str, k: Any) -> Any:
    """The number of a diagonal: an int, or a scalar that may be traced; else TypeError."""
    aval = getattr(k, "aval", None)
    if aval is None:
        return as_index(name, "k", k)
    if aval.shape or aval.dtype.kind not in "biu":
        raise TypeError(f"{name}: k must be an integer, got an array {aval.str_short()}")
    return k


@composite(static=("shape", "relation", "dtype"))
def _where_column(k: Any, shape: tuple[int, int], relation: Any, dtype: Any) -> Any:
    """One where the column minus the row is in `relation` to k."""
    return convert(_by_diagonal(shape, k, relation), dtype)


def _by_diagonal(shape: tuple[int, ...], k: Any, relation: Any) -> Any:
    row, column = (broadcasted_iota(np.dtype("int32"), shape, d) for d in (0, 1))
    return relation(column - row, k)


@composite()
def tril(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros above the k-th diagonal of its last two axes; ValueError for fewer than two dimensions.

    >>> tril(xlamini.numpy.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle("tril", m, k, stacks.tril, operators.less_equal)


@composite()
def triu(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros below the k-th diagonal of its last two axes; ValueError for fewer than two dimensions.

    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k, stacks.triu, operators.greater_equal)


def _triangle(name: str, m: Any, k: Any, triangle: Any, relation: Any) -> Any:
    """The triangle as decompositions take it where k is known, so that one mask serves both."""
    x = as_operand(name, m)
    if x.ndim < 2:
        raise ValueError(f"{name}: at least two dimensions are needed, got shape {x.shape}")
    k = _diagonal_number(name, k)
    if type(k) is int:
        k = min_size(max_size(k, -x.shape[-2]), x.shape[-1])
    if type(k) is int:
        return triangle(x, k)
    keep = _by_diagonal(x.shape[-2:], k, relation)
    mask = broadcast_in_dim(keep, x.shape, (x.ndim - 2, x.ndim - 1))
    return where(mask, x, in_dtype(0, x.dtype))


@composite(static=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or the matrix with a vector as that diagonal; ValueError for another rank.

    >>> diag(xlamini.numpy.arange(1, 3))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_operand("diag", v)
    if x.ndim == 1:
        return _with_diagonal(x, as_index("diag", "k", k))
    if x.ndim == 2:
        return diagonal(x, k)
    raise ValueError(f"diag: a vector or a matrix is needed, got shape {x.shape}")


@composite(static=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of `v`, flattened, on its k-th diagonal.

    >>> jnp.diagflat(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_operand("diagflat", v)
    return _with_diagonal(reshape(x, (x.size,)), as_index("diagflat", "k", k))


def _with_diagonal(x: Any, k: int) -> Any:
    n = x.shape[0] + abs(k)
    padded = pad(x, in_dtype(0, x.dtype), [(max(-k, 0), max(k, 0), 0)])
    rows = broadcast_in_dim(padded, (n, n), (0,))
    return where(_by_diagonal((n, n), k, operators.equal), rows, in_dtype(0, x.dtype))


@composite(static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of the planes of two axes, along a new last axis in their place.

    >>> diagonal(xlamini.numpy.arange(4).reshape(2, 2), 1)
    Array([1], dtype=int32)
    """
    x = as_operand("diagonal", a)
    first, second = as_axis("diagonal", axis1, x.ndim), as_axis("diagonal", axis2, x.ndim)
    if first == second:
        raise ValueError(f"diagonal: axis1 and axis2 are both {first}; two axes are needed")
    x = moveaxis(moveaxis(x, max(first, second), x.ndim - 1), min(first, second), x.ndim - 2)
    offset = as_index("diagonal", "offset", offset)
    return _last_diagonal(x, -offset if first > second else offset)


def _last_diagonal(x: Any, offset: int) -> Any:
    """Every (columns + 1)-th element of each plane, flattened."""
    *outer, rows, columns = x.shape
    length = max_size(0, min_size(rows - max_size(-offset, 0), columns - max_size(offset, 0)))
    flat = reshape(x, (*outer, rows * columns))
    start = (offset if offset >= 0 else -offset * columns) if length != 0 else 0
    if is_symbolic_shape((start, rows, columns)):
        return take(flat, iota(_INDEX, length) * (columns + 1) + start, len(outer), mode="clip")
    stop = start + (length - 1) * (columns + 1) + 1 if length else 0
    return slice(flat, [0] * len(outer) + [start], [*outer, stop], [1] * len(outer) + [columns + 1])


@composite(static=("offset", "axis1", "axis2", "dtype"))
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of the diagonals of the planes of two axes.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    refuse_out("trace", out)
    values = diagonal(a, offset, axis1, axis2)
    return sum(values, aval_of(values).ndim - 1, dtype)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The rows and columns of the elements on and below the k-th diagonal of a matrix, n rows by m (or n) columns.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _as_arrays(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The rows and columns of the elements on and above the k-th diagonal of a matrix, n rows by m (or n) columns.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _as_arrays(np.triu_indices(n, k, m))


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The `tril_indices` of a matrix.

    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _sizes_of("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The `triu_indices` of a matrix.

    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _sizes_of("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _sizes_of(name: str, arr: Any) -> tuple[int, int]:
    shape = arr.shape if hasattr(arr, "shape") else as_operand(name, arr).shape
    if len(shape) < 2:
        raise ShapeError(f"{name}: arr must be a matrix, got shape {shape}")
    return shape[-2], shape[-1]


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the diagonal of an array of `ndim` axes of length n.

    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    if is_symbolic_shape((n,)):
        return (iota(_INDEX, n),) * ndim
    return _as_arrays(np.diag_indices(n, ndim))


def _as_arrays(indices: tuple[np.ndarray, ...]) -> Any:
    return tuple(device_put_value(i) for i in indices)
