"""The solution of a sparse linear system by a direct method, on the host."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError, aval_of
from xlamini.experimental.sparse.matrices import CSR, csr_matvec
from xlamini.numpy.arguments import as_operand
from xlamini.runtime import Array
from xlamini.transforms.callbacks.pure_callback import pure_callback
from xlamini.transforms.solvers.custom_linear_solve import custom_linear_solve


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
    _check(data, indices, indptr, b, reorder)
    size = b.shape[0]

    def product(x: Any) -> Any:
        return csr_matvec(CSR((data, indices, indptr), shape=(size, size)), x)

    def solve(host: Any) -> Any:
        return lambda _, rhs: pure_callback(host, aval_of(rhs), data, indices, indptr, rhs, vmap_method="sequential")

    return custom_linear_solve(product, b, solve(_solve), solve(_solve_transposed))


def _check(data: Any, indices: Any, indptr: Any, b: Any, reorder: int) -> None:
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
