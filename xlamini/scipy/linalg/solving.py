"""Systems of linear equations, by LU or Cholesky factors or with a triangular matrix; inverses and determinants.

A right-hand side of rank 1 is a vector, and so is the last axis of one that has one axis less than the matrices; else
its last two axes are a matrix. Leading axes broadcast. Integers are computed as floats. `overwrite_...`, `debug` and
`check_finite` are there for SciPy's sake and change nothing.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.numpy.linalg import determinants, solving as _solving
from xlamini.numpy.linalg.arguments import inexact, shown, squares
from xlamini.primitives import stop_gradient
from xlamini.primitives.base.promotion import check_ranks
from xlamini.primitives.linalg import lu as _lu
from xlamini.primitives.linalg.cholesky import cholesky
from xlamini.primitives.linalg.lu_pivots import lu_pivots_to_permutation
from xlamini.primitives.linalg.stacks import hermitian, matmul
from xlamini.primitives.linalg.triangular_solve import triangular_solve
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.solvers.custom_linear_solve import custom_linear_solve
from xlamini.typing import ArrayLike


@composite(static=("lower", "overwrite_a", "overwrite_b", "debug", "check_finite", "assume_a"))
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The x with `a @ x == b`, for `a` of shape (..., n, n) and `b` of shape (n,) or (..., n, k).

    With `assume_a="pos"` the matrices are positive definite, and `lower` tells which triangle is read; "gen", "sym" and
    "her" share one solver. A singular matrix gives inf or NaN. ShapeError where shapes do not fit, ValueError for
    another assumption.

    >>> solve(jnp.array([[4.0, 0.0], [0.0, 16.0]]), jnp.array([4.0, 8.0]), assume_a="pos")
    Array([1. , 0.5], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', got {assume_a!r}")
    if assume_a != "pos":
        return _solving.solve(a, b)
    return _with_columns("solve", a, b, lambda a, b: _solve_positive(a, b, lower))


@composite(static=("overwrite_a", "check_finite"))
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of matrices of shape (..., n, n); inf or NaN for a singular one.

    >>> inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return _solving.inv(a)


@composite(static=("overwrite_a", "check_finite"))
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants, of shape (...), of matrices of shape (..., n, n).

    >>> det(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(8., dtype=float32)
    """
    return determinants.det(a)


@composite(static=("lower",))
def _cho_solve(factor: ArrayLike, b: ArrayLike, lower: bool) -> Array:
    return _with_columns("cho_solve", factor, b, lambda c, b: _with_cholesky(c, b, lower))


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The x with `a @ x == b`, given what `cho_factor` returns for `a`. ShapeError where shapes do not fit.

    >>> cho_solve((jnp.array([[2.0]]), False), jnp.array([4.0]))
    Array([1.], dtype=float32)
    """
    factor, lower = _pair("cho_solve", "c_and_lower", c_and_lower, "cho_factor")
    return _cho_solve(factor, b, bool(lower))


@composite(static=("trans",))
def _lu_solve(factors: Any, pivots: Any, b: Any, trans: int) -> Any:
    permutation = lu_pivots_to_permutation(jnp.asarray(pivots), squares("lu_solve", factors).shape[-1])

    def solved(a: Any, b: Any) -> Any:
        order = jnp.broadcast_to(permutation, a.shape[:-1])
        return _lu.lu_solve(a, order, b, transpose=trans > 0, conjugate=trans == 2)

    return _with_columns("lu_solve", factors, b, solved)


def lu_solve(
    lu_and_piv: tuple[Array, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The x with `a @ x == b`, given what `lu_factor` returns for `a`; with `trans` 1 or 2 for `a^T` or `a^H`.

    ShapeError where shapes do not fit, ValueError for another `trans`.

    >>> lu_solve((jnp.array([[2.0]]), jnp.array([0])), jnp.array([4.0]))
    Array([2.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}")
    factors, pivots = _pair("lu_solve", "lu_and_piv", lu_and_piv, "lu_factor")
    return _lu_solve(factors, pivots, b, int(trans))


def _pair(name: str, argument: str, value: Any, source: str) -> tuple[Any, Any]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{name}: {argument} must be the pair that {source} returns, got {type(value).__name__}")
    return value[0], value[1]


_TRANSPOSED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


@composite(static=("trans", "lower", "unit_diagonal", "overwrite_b", "debug", "check_finite"))
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The x with `a @ x == b` for triangular `a` of shape (..., n, n), of which only the upper triangle is read.

    With `lower` it is the lower one; with `trans` 1 ("T") or 2 ("C") the matrix is `a^T` or `a^H`; with `unit_diagonal`
    the diagonal is taken for ones. ShapeError where shapes do not fit, ValueError for another `trans`.

    >>> solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([2.0, 4.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    kind = _TRANSPOSED.get(trans)
    if kind is None:
        raise ValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    how = {"lower": lower, "transpose_a": kind > 0, "conjugate_a": kind == 2, "unit_diagonal": unit_diagonal}
    return _with_columns("solve_triangular", a, b, lambda a, b: triangular_solve(a, b, left_side=True, **how))


# --- helpers


def _with_columns(name: str, a: Any, b: Any, solved: Callable[[Any, Any], Any]) -> Any:
    """The result of `solved` on matrices and columns with equal leading axes, in the shape that `b` calls for."""
    check_ranks(name, (a, b), (2, 1 if np.ndim(b) in (1, np.ndim(a) - 1) else 2))
    a, b = inexact(name, a, b)
    a = squares(name, a)
    vector = b.ndim == 1 or b.ndim == a.ndim - 1
    columns = b[..., None] if vector else b
    if b.ndim == 0 or columns.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"{name}: the matrix is {shown(a)}, b is {shown(b)}; b needs shape ({a.shape[-1]},) or "
            f"(..., {a.shape[-1]}, k)"
        )
    try:
        outer = jnp.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    except ValueError:
        raise ShapeError(f"{name}: leading axes of {shown(a)} and {shown(b)} do not broadcast") from None
    x = solved(*(jnp.broadcast_to(y, (*outer, *y.shape[-2:])) for y in (a, columns)))
    return x[..., 0] if vector else x


def _with_cholesky(factor: Any, b: Any, lower: bool) -> Any:
    """Solve with `L L^H`, or with `U^H U`."""
    first = triangular_solve(factor, b, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=not lower)
    return triangular_solve(factor, first, left_side=True, lower=lower, transpose_a=lower, conjugate_a=lower)


def _solve_positive(a: Any, b: Any, lower: bool) -> Any:
    """Solve by Cholesky's factor, through which no derivative passes."""
    a = hermitian(a, lower)  # of the triangle that is read, as is the derivative
    kept = stop_gradient(a)
    factor = cholesky(kept, symmetrize_input=False)
    return custom_linear_solve(
        lambda x: matmul(a, x),
        b,
        lambda _, v: _with_cholesky(factor, v, True),
        lambda _, v: jnp.conj(_with_cholesky(factor, jnp.conj(v), True)),  # the transposed matrix is the conjugate
    )
