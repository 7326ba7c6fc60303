"""Systems of linear equations, inverses and pseudo-inverses."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import math

import numpy as np

from xlamini.core.errors import ShapeError
from xlamini.core.tracer import aval_of
from xlamini.numpy import reductions
from xlamini.numpy.arguments import as_axis, as_index, as_operand
from xlamini.numpy.linalg.arguments import inexact, matrices, shown, squares
from xlamini.numpy.linalg.factorizations import svd
from xlamini.numpy.shapes import moveaxis, reshape
from xlamini.primitives.arithmetic import abs
from xlamini.primitives.complex import real
from xlamini.primitives.convert import convert
from xlamini.primitives.identity import stop_gradient
from xlamini.primitives.linalg.lu import lu, lu_solve
from xlamini.primitives.linalg.stacks import eye, is_complex, matmul, mH
from xlamini.primitives.promotion import broadcast_to, in_dtype
from xlamini.primitives.select import where
from xlamini.primitives.shape import expand_dims, squeeze
from xlamini.primitives.tangent_ops import full, zeros
from xlamini.runtime.array import Array
from xlamini.transforms.composite import composite
from xlamini.transforms.custom.custom_jvp import custom_jvp
from xlamini.transforms.custom.custom_linear_solve import custom_linear_solve
from xlamini.typing import ArrayLike

Factors = tuple[Any, Any]


@composite()
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with `a @ x == b`, for matrices `a` of shape [..., n, n]; `b` has shape [n] or [..., n, k].

    Leading dimensions broadcast. A singular matrix gives inf or NaN. ShapeError where shapes do not fit.

    >>> solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    a, b = inexact("solve", a, b)
    a = squares("solve", a)
    vector = b.ndim == 1
    rows = b.shape[-1 if vector else -2] if b.ndim else None
    if rows != a.shape[-1] or (b.ndim == a.ndim - 1 and not vector):
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
    x = squares("inv", a)
    return solve_with(x, factored(x), eye(aval_of(x)))


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
            f"tensorsolve: a is {shown(a)}, b is {shown(b)}; a needs the dimensions of b first, and then as many elements"
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


@composite(static=("numpy_resid",))
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The x of least length with the least `norm(a @ x - b)`, the squared residuals, the rank and the singular values.

    `a` has shape [m, n], `b` [m] or [m, k]. Singular values below `rcond` times the largest count as zero; by default
    `rcond` is the rounding error times max(m, n). With `numpy_resid` there are residuals as NumPy has them. ShapeError
    where shapes do not fit.

    >>> x, residuals, rank, s = lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> x, residuals, rank
    (Array([2.], dtype=float32), Array([2.], dtype=float32), Array(1, dtype=int32))
    """
    a, b = inexact("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(f"lstsq: a is {shown(a)}, b is {shown(b)}; a needs rank 2, b rank 1 or 2 and as many rows")
    right = expand_dims(b, (1,)) if b.ndim == 1 else b
    x, residuals, rank, s = _least_squares(a, right, rcond, numpy_resid)
    return (squeeze(x, (1,)) if b.ndim == 1 else x), residuals, rank, s


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
        tolerance = 10.0 * max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    return _pinv(x, in_dtype(tolerance, real(x).dtype if is_complex(x) else x.dtype), hermitian)


# --- by LU decomposition


def factored(a: Any) -> Factors:
    """What `solve_with` needs; no derivative passes through it."""
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
    """One matrix for all right-hand sides, which stand side by side."""
    if b.ndim == 2:
        return solve_with(a, factored(a), b)
    rows_first = moveaxis(b, -2, 0)
    x = solve_with(a, factored(a), reshape(rows_first, (b.shape[-2], math.prod(rows_first.shape[1:]))))
    return moveaxis(reshape(x, rows_first.shape), 0, -2)


def _common_batch(a: Any, b: Any) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ShapeError(f"solve: a is {shown(a)}, b is {shown(b)}; their leading dimensions do not broadcast") from None


# --- by singular values


def _least_squares(a: Any, b: Any, rcond: Any, numpy_resid: bool) -> tuple[Any, Any, Any, Any]:
    m, n = a.shape
    if not m or not n:
        return _of_nothing(a, b)
    u, s, vh = svd(a, full_matrices=False)
    eps = float(np.finfo(a.dtype).eps)
    rcond = eps * max(m, n) if rcond is None else rcond
    cutoff = where(rcond < 0, eps, rcond) if not isinstance(rcond, float | int) else rcond if rcond >= 0 else eps
    kept = (s > 0) & (s >= in_dtype(cutoff, s.dtype) * s[0])
    inverse = where(kept, 1 / where(kept, s, full(aval_of(s), 1)), zeros(aval_of(s)))
    x = matmul(mH(vh), convert(inverse, a.dtype)[:, None] * matmul(mH(u), b))
    rank = reductions.sum(convert(kept, np.dtype(np.int32)))
    missed = abs(b - matmul(a, x))
    return x, reductions.sum(missed * missed, 0), rank, s


def _of_nothing(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    raise NotImplementedError


@custom_jvp
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    ...
