"""Sylvester's equation A X + X B = C, by Schur's forms or by eigenvalues."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.numpy.linalg import solving
from xlamini.numpy.linalg.arguments import inexact, shown
from xlamini.primitives import stop_gradient
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.linalg.eig import eig
from xlamini.primitives.linalg.schur import schur
from xlamini.primitives.linalg.stacks import matmul, mH, mT
from xlamini.primitives.linalg.triangular_solve import triangular_solve
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.solvers.custom_linear_solve import custom_linear_solve
from xlamini.typing import ArrayLike


@composite(static=("method",))
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The X, of shape (..., m, n), with `A X + X B = C`, for A of shape (..., m, m), B (..., n, n), C (..., m, n).

    Leading axes broadcast. "schur" (Bartels and Stewart, 1972) is precise, and on the CPU only; "eigen" is faster, and
    less precise where eigenvectors nearly depend on each other. All is NaN where an eigenvalue of A and one of B sum up
    to less than `tol`: there is no unique solution then. ShapeError where shapes do not fit, ValueError for another
    method.

    >>> solve_sylvester(jnp.eye(1), jnp.eye(1), jnp.ones((1, 1)), method="eigen")
    Array([[0.5]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: method must be 'schur' or 'eigen', got {method!r}")
    a, b, c = _checked(*inexact("solve_sylvester", A, B, C))
    return solve_checked(a, b, c, _by_schur if method == "schur" else _by_eigenvalues, tol)


def _checked(a: Any, b: Any, c: Any) -> list[Any]:
    ranks = all(x.ndim >= 2 for x in (a, b, c))
    if not ranks or a.shape[-2:] != (c.shape[-2],) * 2 or b.shape[-2:] != (c.shape[-1],) * 2:
        raise ShapeError(
            f"solve_sylvester: A is {shown(a)}, B is {shown(b)}, C is {shown(c)}; shapes (..., m, m), (..., n, n) and "
            "(..., m, n) are needed"
        )
    try:
        outer = jnp.broadcast_shapes(*(x.shape[:-2] for x in (a, b, c)))
    except ValueError:
        raise ShapeError(
            f"solve_sylvester: leading axes of {shown(a)}, {shown(b)} and {shown(c)} do not broadcast"
        ) from None
    return [jnp.broadcast_to(x, (*outer, *x.shape[-2:])) for x in (a, b, c)]


def _by_schur(a: Any, b: Any, c: Any, tol: Any) -> Any:
    """Solve R Y + Y S = U^H C V column by column, for the complex Schur forms A = U R U^H and B = V S V^H."""
    whole = np.result_type(a.dtype, np.complex64)
    r, u = schur(a.astype(whole))
    s, v = schur(b.astype(whole))
    right = matmul(matmul(mH(u), c.astype(whole)), v)
    y = _solved_columns(r, s, right)
    x = matmul(matmul(u, y), mH(v))
    x = x if is_complex(c) else x.real
    return _nan_where_singular(x, jnp.diagonal(r, axis1=-2, axis2=-1), jnp.diagonal(s, axis1=-2, axis2=-1), tol)


def _solved_columns(r: Any, s: Any, right: Any) -> Any:
    """Column j of Y: (R + S[j, j]) y = right[:, j] - (columns before j) S[:j, j]; a triangular system."""
    identity = jnp.eye(r.shape[-1], dtype=r.dtype)

    def column(j: Any, y: Any) -> Any:
        weights = jnp.take(s, j, axis=-1)[..., None]  # columns from j on are zero yet
        known = jnp.take(right, j, axis=-1)[..., None] - matmul(y, weights)
        shift = jnp.take(weights, j, axis=-2)[..., None]
        found = triangular_solve(r + shift * identity, known, left_side=True)
        return y.at[..., j].set(found[..., 0])

    return fori_loop(0, s.shape[-1], column, jnp.zeros_like(right))


def _by_eigenvalues(a: Any, b: Any, c: Any, tol: Any) -> Any:
    """Solve in the bases of eigenvectors, which decouple the equation: each element is divided by an eigenvalue sum."""
    (left, p), (right, q) = (eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True) for x in (a, b))
    inner = solving.solve(p, matmul(c.astype(p.dtype), q)) / (left[..., :, None] + right[..., None, :])
    x = matmul(p, matmul(inner, solving.inv(q)))
    return _nan_where_singular(x if is_complex(c) else x.real, left, right, tol)


def solve_checked(a: Any, b: Any, c: Any, method: Any = _by_schur, tol: Any = 0.0) -> Any:
    """The solution for matrices of one dtype and batch; its derivative is the solution of such an equation too."""
    kept = stop_gradient(a), stop_gradient(b)
    return custom_linear_solve(
        lambda x: matmul(a, x) + matmul(x, b),
        c,
        lambda _, v: method(*kept, v, tol),
        lambda _, v: method(*map(mT, kept), v, tol),
    )


def _nan_where_singular(x: Any, left: Any, right: Any, tol: Any) -> Any:
    near = jnp.abs(left[..., :, None] + right[..., None, :]) < tol
    return jnp.where(jnp.any(near, axis=(-2, -1), keepdims=True), np.nan, x)
