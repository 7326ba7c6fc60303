"""Products of matrices: powers, chains in the best order, and NumPy's functions under their names in the array API."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from xlamini.core import ShapeError, aval_of
from xlamini.numpy import linear_algebra, matrices, shapes
from xlamini.numpy.arguments import as_index, as_operand
from xlamini.numpy.cross import cross as _cross
from xlamini.numpy.linalg.arguments import shown
from xlamini.numpy.linalg.solving import inv
from xlamini.primitives.linalg.stacks import eye
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike


@composite(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """The matrices of shape [..., m, m] multiplied with themselves n times; for negative n their inverses.

    `n` is an int: TypeError for anything else. ShapeError for matrices that are not square.

    >>> matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    x = as_operand("matrix_power", a)
    n = as_index("matrix_power", "n", n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: square matrices are needed, got {shown(x)}; its last two sizes must be equal")
    if n == 0:
        return eye(aval_of(x))
    return _power(inv(x) if n < 0 else x, n if n > 0 else -n)


@composite(static=("precision",))
def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of two matrices or more, in the order that takes the fewest multiplications.

    The first and the last one may be vectors. ValueError for fewer than two, ShapeError where shapes do not fit.

    >>> multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    factors = [as_operand("multi_dot", x) for x in arrays]
    _check_chain(factors)
    first, *_, last = factors
    rows, columns = (1,) * (first.ndim == 1), (1,) * (last.ndim == 1)
    factors[0] = shapes.reshape(first, (*rows, *first.shape))
    factors[-1] = shapes.reshape(last, (*last.shape, *columns))
    out = _chained(factors, _splits([*(x.shape[0] for x in factors), factors[-1].shape[1]]), 0, len(factors), precision)
    return shapes.reshape(out, (*first.shape[:-1], *last.shape[1:]))


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of three elements along `axis`; the other axes broadcast. ShapeError for others.

    >>> cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    x1, x2 = as_operand("cross", x1), as_operand("cross", x2)
    if any(not x.ndim or x.shape[axis] != 3 for x in (x1, x2)):
        raise ShapeError(f"cross: x1 is {shown(x1)}, x2 is {shown(x2)}; both need 3 elements along axis {axis}")
    return _cross(x1, x2, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices of shape [..., m, n], `offset` places above the main one.

    >>> diagonal(jnp.array([[1, 2], [3, 4]]), offset=1)
    Array([2], dtype=int32)
    """
    return matrices.diagonal(x, offset, -2, -1)


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The matrix product `x1 @ x2`; see `jnp.matmul`.

    >>> matmul(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
    """
    return linear_algebra.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The transposed matrices, of shape [..., n, m], of matrices of shape [..., m, n].

    >>> matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    return shapes.matrix_transpose(x)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of every element of one vector with every element of another. ShapeError unless both have rank 1.

    >>> outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x1, x2 = as_operand("outer", x1), as_operand("outer", x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer: two vectors are needed, got {shown(x1)} and {shown(x2)}; flatten them with ravel")
    return linear_algebra.outer(x1, x2)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product summed over the last `axes` of `x1` and the first of `x2`, or over pairs; see `jnp.tensordot`.

    >>> tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5))).shape
    (2, 5)
    """
    return linear_algebra.tensordot(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices of shape [..., m, n], `offset` places above the main one.

    >>> trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return matrices.trace(x, offset, -2, -1, dtype)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product summed over `axis`, of the complex conjugate of `x1`; the other axes broadcast; see `jnp.vecdot`.

    >>> vecdot(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    return linear_algebra.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


# --- helpers


def _power(x: Any, n: int) -> Any:
    """The power by repeated squaring."""
    if n == 1:
        return x
    square = _power(linear_algebra.matmul(x, x), n // 2)
    return linear_algebra.matmul(square, x) if n % 2 else square


def _check_chain(factors: Sequence[Any]) -> None:
    found = ", ".join(map(shown, factors))
    if len(factors) < 2:
        raise ValueError(f"multi_dot: two matrices at least are needed, got {len(factors)}")
    ends = factors[0].ndim in (1, 2) and factors[-1].ndim in (1, 2)
    if not ends or any(x.ndim != 2 for x in factors[1:-1]):
        raise ShapeError(f"multi_dot: matrices are needed, or vectors at the ends, got {found}")
    if any(x.shape[-1] != y.shape[0] for x, y in pairwise(factors)):
        raise ShapeError(f"multi_dot: the last size of each must be the first of the next, got {found}")


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """The cheapest split of the product of matrices i to j - 1, the k-th of sizes[k] rows.

    Cormen et al., Introduction to Algorithms, chapter 15.2.
    """
    count = len(sizes) - 1
    cost = {(i, i + 1): 0 for i in range(count)}
    best: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length
            costs = [(cost[i, k] + cost[k, j] + sizes[i] * sizes[k] * sizes[j], k) for k in range(i + 1, j)]
            cost[i, j], best[i, j] = min(costs)
    return best


def _chained(factors: Sequence[Any], best: dict[tuple[int, int], int], i: int, j: int, precision: Any) -> Any:
    if j == i + 1:
        return factors[i]
    k = best[i, j]
    left, right = _chained(factors, best, i, k, precision), _chained(factors, best, k, j, precision)
    return linear_algebra.matmul(left, right, precision=precision)
