"""Eigenvalues by products with a matrix alone, and sparse linear systems, solved on the host.

The method LOBPCG, in one while loop, finds the largest eigenvalues of a symmetric matrix. Each iteration looks for the
best eigenvectors in the space that three blocks span: the present vectors, their residuals, and the step of the last
iteration. A Householder QR makes its basis orthonormal, and completes the basis where the blocks are dependent, so that
nothing has to be locked or restarted near convergence.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError, aval_of
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.experimental.sparse.matrices import CSR, csr_matvec
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.linalg import eigh, norm, qr
from xlamini.runtime import Array
from xlamini.transforms.callbacks.pure_callback import pure_callback
from xlamini.transforms.solvers.custom_linear_solve import custom_linear_solve
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


def spsolve(data: Array, indices: Array, indptr: Array, b: Array, tol: float = 1e-6, reorder: int = 1) -> Array:
    """`x` with `A @ x == b`, of shape `(n,)`: SciPy computes it on the host, by an LU factorization.

    `A`, of shape `(n, n)`, has compressed rows: `data (nse,)`, the columns `indices (nse,)` and where the rows begin,
    `indptr (n + 1,)`. `x` has derivatives in `data` and `b`, and vmap solves the systems one by one. `tol` and
    `reorder`, from 0 to 3, are those of JAX's kernel for GPUs, without effect here. ShapeError for sizes that do not
    fit, ValueError for another `reorder`, TypeError for dtypes that differ.

    >>> A = xlamini.experimental.sparse.CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> spsolve(A.data, A.indices, A.indptr, jnp.array([2.0, 9.0]))
    Array([1., 2.], dtype=float32)
    """
    data, indices, indptr, b = (as_operand("spsolve", x) for x in (data, indices, indptr, b))
    _check_system(data, indices, indptr, b, reorder)
    size = b.shape[0]

    def product(x: Any) -> Any:
        return csr_matvec(CSR((data, indices, indptr), shape=(size, size)), x)

    def solve(host: Any) -> Any:
        return lambda _, rhs: pure_callback(host, aval_of(rhs), data, indices, indptr, rhs, vmap_method="sequential")

    return custom_linear_solve(product, b, solve(_solve), solve(_solve_transposed))


def _check_system(data: Any, indices: Any, indptr: Any, b: Any, reorder: int) -> None:
    if data.dtype != b.dtype:
        raise TypeError(f"spsolve: data and b must have one dtype, got {data.dtype} and {b.dtype}; convert one of them")
    if not all(jnp.issubdtype(x.dtype, np.integer) for x in (indices, indptr)):
        raise TypeError(f"spsolve: indices and indptr must be integers, got {indices.dtype} and {indptr.dtype}")
    shapes = [x.shape for x in (data, indices, indptr, b)]
    if any(len(shape) != 1 for shape in shapes) or shapes[0] != shapes[1] or shapes[2][0] != shapes[3][0] + 1:
        raise ShapeError(
            "spsolve: data and indices must have one shape (nse,), indptr (n + 1,) and b (n,), got "
            + ", ".join(map(str, shapes))
        )
    if reorder not in range(4):
        raise ValueError(f"spsolve: reorder must be 0, 1, 2 or 3, got {reorder!r}")


def _solve(data: Any, indices: Any, indptr: Any, b: Any, transposed: bool = False) -> np.ndarray:
    from scipy.sparse import csr_matrix, linalg  # an optional dependency, of this function alone

    A: Any = csr_matrix(tuple(map(np.asarray, (data, indices, indptr))), shape=(b.size, b.size))
    return np.asarray(linalg.spsolve(A.T.tocsr() if transposed else A, np.asarray(b)), b.dtype)


def _solve_transposed(*args: Any) -> np.ndarray:
    return _solve(*args, transposed=True)


_edge_of_face(globals())
