"""Systems of linear equations, inverses and pseudo-inverses."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of
from xlamini.core.dtypes.limits import finfo
from xlamini.core.sizes.expression import max_size
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy import reductions
from xlamini.numpy.arguments import as_axis, as_index, as_operand
from xlamini.numpy.construction import asarray
from xlamini.numpy.linalg.arguments import inexact, matrices, shown, squares
from xlamini.numpy.linalg.factorizations import svd
from xlamini.numpy.shapes import moveaxis, reshape
from xlamini.primitives import abs, broadcast_to, convert, expand_dims, full, squeeze, stop_gradient, where, zeros
from xlamini.primitives.base.promotion import check_ranks
from xlamini.primitives.elementwise.complex import part_dtype
from xlamini.primitives.linalg.cholesky import symmetrized
from xlamini.primitives.linalg.lu import lu, lu_inverse, lu_solve
from xlamini.primitives.linalg.stacks import matmul, mH
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.custom.custom_jvp import custom_jvp
from xlamini.transforms.solvers.custom_linear_solve import custom_linear_solve
from xlamini.typing import ArrayLike

Factors = tuple[Any, Any]


@composite()
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with `a @ x == b`, for matrices `a` of shape [..., n, n]; `b` has shape [n] or [..., n, k].

    Leading dimensions broadcast. A singular matrix gives inf or NaN. ShapeError where shapes do not fit.

    >>> solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    check_ranks("solve", (a, b), (2, 1 if np.ndim(b) == 1 else 2))
    a, b = inexact("solve", a, b)
    a = squares("solve", a)
    vector = b.ndim == 1
    rows = b.shape[-1 if vector else -2] if b.ndim else None
    if rows != a.shape[-1] or (b.shape == a.shape[:-1] and not vector):
        raise ShapeError(
            f"solve: a is {shown(a)}, b is {shown(b)}; b needs shape [{a.shape[-1]}] or [..., {a.shape[-1]}, k] (for a "
            "vector for each matrix give b[..., None])"
        )
    x = _solve(a, expand_dims(b, (1,)) if vector else b)
    return squeeze(x, (x.ndim - 1,)) if vector else x


@composite()
def inv(a: ArrayLike) -> Array:
    """The inverses of matrices of shape [..., n, n]; inf or NaN for a singular one. ShapeError if they are not square.

    >>> inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return _inverse(squares("inv", a))


@custom_jvp
def _inverse(a: Any) -> Any:
    return lu_inverse(*factored(a))


@_inverse.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (a,), (tangent,) = primals, tangents
    x = _inverse(a)
    return x, -matmul(x, matmul(tangent, x))


@composite(static=("axes",))
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The x with `tensordot(a, x, x.ndim) == b`, after moving `axes` of `a` to its end.

    The shape of `a` is that of `b` and then that of x, with as many elements; else ShapeError.

    >>> tensorsolve(jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    a, b = as_operand("tensorsolve", a), as_operand("tensorsolve", b)
    if axes is not None:
        moved = [as_axis("tensorsolve", axis, a.ndim) for axis in axes]
        a = moveaxis(a, moved, range(a.ndim - len(moved), a.ndim))
    shape = a.shape[b.ndim :]
    if a.ndim < b.ndim or math.prod(shape) != math.prod(a.shape[: b.ndim]) or math.prod(shape) != b.size:
        raise ShapeError(
            f"tensorsolve: a is {shown(a)}, b is {shown(b)}; a needs the dimensions of b, then as many elements"
        )
    return reshape(solve(reshape(a, (b.size, b.size)), reshape(b, (b.size,))), shape)


@composite(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of `a` for `tensordot(a, x, ind)`: of the map from its last dimensions to its first `ind`.

    >>> tensorinv(jnp.eye(4).reshape(4, 2, 2), ind=1).shape
    (2, 2, 4)
    """
    a, ind = as_operand("tensorinv", a), as_index("tensorinv", "ind", ind)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be positive, got {ind}")
    first, last = a.shape[:ind], a.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise ShapeError(f"tensorinv: a is {shown(a)}; its first {ind} dimensions need as many elements as the others")
    return reshape(inv(reshape(a, (math.prod(first), math.prod(last)))), (*last, *first))


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The x of least length with the least `norm(a @ x - b)`, the squared residuals, the rank and the singular values.

    `a` has shape [m, n], `b` [m] or [m, k]. Singular values below `rcond` times the largest count as zero; by default
    `rcond` is the rounding error times max(m, n). With `numpy_resid` there are no residuals unless m > n and the rank
    is n, as in NumPy, which cannot be traced. ShapeError where shapes do not fit.

    >>> x, residuals, rank, s = lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> residuals, rank
    (Array([2.], dtype=float32), Array(1, dtype=int32))
    """
    x, residuals, rank, s = _lstsq(a, b, rcond)
    if numpy_resid:
        m, n = a.shape  # type: ignore[union-attr]
        residuals = residuals if m > n and rank == n else residuals[:0]
    return x, residuals, rank, s


@composite(static=("hermitian",))
def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The pseudo-inverses, of shape [..., n, m], of matrices of shape [..., m, n].

    Singular values below `rtol` times the largest count as zero; by default `rtol` is 10 max(m, n) times the rounding
    error. `hermitian` says that matrices are, which is faster. `rcond` is another name of `rtol`.

    >>> pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: rtol and rcond are the same; give one of them")
    x = matrices("pinv", a)
    tolerance = rcond if rtol is None else rtol
    if tolerance is None:
        tolerance = 10.0 * max_size(*x.shape[-2:]) * float(finfo(x.dtype).eps)
    return _pinv(x, asarray(tolerance, part_dtype(x.dtype)), hermitian)


# --- by LU decomposition


def factored(a: Any) -> Factors:
    """The factors for `solve_with`; no derivative passes through them."""
    factors, _, permutation = lu(stop_gradient(a))
    return factors, permutation


def solve_with(a: Any, factors: Factors, b: Any) -> Any:
    """The x with `a @ x == b`, of one batch shape, with the factors of `a`."""
    return custom_linear_solve(
        lambda x: matmul(a, x),
        b,
        lambda _, v: lu_solve(*factors, v),
        lambda _, v: lu_solve(*factors, v, transpose=True),
    )


def _solve(a: Any, b: Any) -> Any:
    if a.ndim == 2:
        return _with_one_matrix(a, b)
    batch = _common_batch(a, b)
    factors, permutation = factored(a)
    n = a.shape[-1]
    spread = [broadcast_to(v, (*batch, n, n)) for v in (a, factors)]
    taken = broadcast_to(permutation, (*batch, n))
    return solve_with(spread[0], (spread[1], taken), broadcast_to(b, (*batch, *b.shape[-2:])))


def _with_one_matrix(a: Any, b: Any) -> Any:
    """Solve with one matrix for all right-hand sides, joined as columns."""
    if b.ndim == 2:
        return solve_with(a, factored(a), b)
    rows_first = moveaxis(b, -2, 0)
    x = solve_with(a, factored(a), reshape(rows_first, (b.shape[-2], math.prod(rows_first.shape[1:]))))
    return moveaxis(reshape(x, rows_first.shape), 0, -2)


def _common_batch(a: Any, b: Any) -> tuple[int, ...]:
    try:
        return broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        found = f"a is {shown(a)}, b is {shown(b)}"
        raise ShapeError(f"solve: {found}; their leading dimensions do not broadcast") from None


# --- by singular values


@composite()
def _lstsq(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any]:
    a, b = inexact("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(f"lstsq: a is {shown(a)}, b is {shown(b)}; a needs rank 2, b rank 1 or 2 and as many rows")
    right = expand_dims(b, (1,)) if b.ndim == 1 else b
    u, s, vh = svd(a, full_matrices=False)
    kept = _not_negligible(s, rcond, max_size(*a.shape))
    x = _least_squares(a, right, *map(stop_gradient, (mH(u), where(kept, s, full(aval_of(s), np.inf)), mH(vh))))
    missed = abs(right - matmul(a, x))
    rank = reductions.sum(convert(kept, np.dtype(np.int32)))
    return (squeeze(x, (1,)) if b.ndim == 1 else x), reductions.sum(missed * missed, 0), rank, s


def _not_negligible(s: Any, rcond: Any, size: int) -> Any:
    """A mask of the singular values, in descending order, that are neither zero nor below `rcond` times the first."""
    eps = float(finfo(s.dtype).eps)
    cutoff = asarray(eps * size if rcond is None else rcond, s.dtype)
    cutoff = where(cutoff < 0, eps, cutoff)
    return (s > 0) & (s >= cutoff * s[:1])


def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    a = symmetrized(a) if hermitian else a
    u, s, vh = svd(stop_gradient(a), full_matrices=False, hermitian=hermitian)
    if not s.shape[-1]:
        return zeros(aval_of(mH(a)))
    dropped = s <= expand_dims(stop_gradient(rtol), (aval_of(rtol).ndim,)) * s[..., :1]
    return _inverse_of(a, mH(u), where(dropped, full(aval_of(s), np.inf), s), mH(vh))


# These have the decomposition as constant arguments, because its own derivative lacks a part where values are equal.
# Golub & Pereyra, The differentiation of pseudo-inverses, 1973, eq. 4.12, for matrices of constant rank.


@custom_jvp
def _inverse_of(a: Any, uh: Any, s: Any, v: Any) -> Any:
    """The pseudo-inverse."""
    return matmul(v, uh / convert(s, uh.dtype)[..., None])


@_inverse_of.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (a, *_), (da, *_) = primals, tangents
    p = _inverse_of(*primals)
    rows, columns = _product(mH(da), mH(p), p), _product(p, mH(p), mH(da))
    rows = rows - _product(p, a, rows)
    columns = columns - _product(columns, a, p)
    return p, rows + columns - _product(p, da, p)


@custom_jvp
def _least_squares(a: Any, b: Any, uh: Any, s: Any, v: Any) -> Any:
    """The pseudo-inverse times `b`."""
    return matmul(v, matmul(uh, b) / convert(s, uh.dtype)[..., None])


@_least_squares.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (a, b, *factors), (da, db, *_) = primals, tangents
    x, p = _least_squares(*primals), _inverse_of(a, *factors)
    rows = matmul(mH(da), matmul(mH(p), x))
    rows = rows - matmul(p, matmul(a, rows))
    columns = matmul(p, matmul(mH(p), matmul(mH(da), b - matmul(a, x))))
    return x, matmul(p, db - matmul(da, x)) + rows + columns


def _product(x: Any, y: Any, z: Any) -> Any:
    """`x @ y @ z` of shapes [n, m], [m, n] and [n, m], by the smaller of the squares."""
    n, m = aval_of(x).shape[-2:]
    return matmul(x, matmul(y, z)) if m < n else matmul(matmul(x, y), z)
