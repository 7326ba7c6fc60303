"""The largest eigenvalues of a symmetric matrix, by products with it alone: the method LOBPCG, in one while loop.

Each iteration looks for the best eigenvectors in the space that three blocks span: the present vectors, their
residuals, and the step of the last iteration. A Householder QR makes its basis orthonormal, and completes the basis
where the blocks are dependent, so that nothing has to be locked or restarted near convergence.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.experimental.sparse.direct_solve import spsolve as spsolve
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.linalg import eigh, norm, qr
from xlamini.runtime import Array
from xlamini.transforms.while_loop.api import while_loop

__all__ = ["lobpcg_standard", "spsolve"]


class _LobpcgState(NamedTuple):
    """After `iteration` steps: the vectors, their products with the matrix, the eigenvalues, and the last step."""

    iteration: Any
    vectors: Any
    products: Any
    values: Any
    step: Any
    converged: Any


def lobpcg_standard(
    A: Array | Callable[[Array], Array], X: Array, m: int = 100, tol: float | Array | None = None
) -> tuple[Array, Array, Array]:
    """The k largest eigenvalues `(k,)` of a symmetric matrix, their eigenvectors `(n, k)`, and the number of steps.

    `A` is the matrix `(n, n)`, or a function that multiplies an array `(n, k)` by it. The columns of `X`, of shape
    `(n, k)`, are the vectors to start from; they must be independent, and `5 * k < n`. There are at most `m` steps. An
    eigenpair has converged when `norm(A @ v - value * v)` is below `tol * 10 * n * (value + norm(A @ v))`; `tol` is the
    epsilon of the dtype if not given. Derivatives for `A` are not those of the eigenvalues.

    >>> values, vectors, steps = lobpcg_standard(jnp.diag(jnp.arange(1.0, 9.0)), jnp.ones((8, 1)))
    >>> bool(abs(values[0] - 8) < 1e-4)
    True
    """
    X = as_operand("lobpcg_standard", X)
    _check(X)
    multiply = A if callable(A) else _product(as_operand("lobpcg_standard", A), X)
    limit = 10 * X.shape[0] * (jnp.finfo(X.dtype).eps if tol is None else tol)
    start = _best(multiply, qr(X)[0], X.shape[1])
    zero = jnp.zeros_like(X)
    first = _LobpcgState(0, *start, zero, jnp.zeros(X.shape[1], bool))
    done = while_loop(
        lambda s: (s.iteration < m) & ~s.converged.all(), lambda s: _improved(multiply, s, limit), first
    )
    return done.values, done.vectors, done.iteration


def _improved(multiply: Callable[[Array], Array], state: _LobpcgState, limit: Any) -> _LobpcgState:
    """The best vectors of the space of the present ones, their residuals and the last step."""
    count = state.vectors.shape[1]
    basis, _ = qr(jnp.concatenate([state.vectors, _residuals(state), state.step], axis=1))
    vectors, products, values = _best(multiply, basis, count)
    step = vectors - state.vectors @ (state.vectors.T @ vectors)
    made = _LobpcgState(state.iteration + 1, vectors, products, values, step, state.converged)
    scale = abs(values) + norm(products, axis=0)
    return made._replace(converged=norm(_residuals(made), axis=0) < limit * scale)


def _best(multiply: Callable[[Array], Array], basis: Array, count: int) -> tuple[Array, Array, Array]:
    """The `count` largest eigenvectors within the space of an orthonormal basis, their products, their eigenvalues."""
    products = multiply(basis)
    values, mixed = eigh(basis.T @ products)
    chosen = mixed[:, ::-1][:, :count]
    return basis @ chosen, products @ chosen, values[::-1][:count]


def _residuals(state: _LobpcgState) -> Array:
    return state.products - state.vectors * state.values


def _product(matrix: Array, X: Array) -> Callable[[Array], Array]:
    if matrix.shape != (X.shape[0],) * 2 or matrix.dtype != X.dtype:
        raise ShapeError(
            f"lobpcg_standard: A must be a square matrix of the rows and the dtype of X, which is {X.dtype}"
            f"{list(X.shape)}; got {matrix.dtype}{list(matrix.shape)}"
        )
    return lambda vectors: matrix @ vectors


def _check(X: Array) -> None:
    if X.ndim != 2 or not 0 < 5 * X.shape[1] < X.shape[0]:
        raise ShapeError(
            f"lobpcg_standard: X must have shape (n, k) with 0 < 5 * k < n, got {X.shape}; for so many of the "
            "eigenvectors use numpy.linalg.eigh"
        )


_edge_of_face(globals())
