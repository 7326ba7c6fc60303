"""Factors of matrices: by Cholesky, LU, QR, singular values, eigenvalues, of Schur and of Hessenberg, and polar ones.

Integers are computed as floats. `overwrite_...` and `check_finite` are there for SciPy's sake and change nothing.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.core.sizes.expression import is_less
from xlamini.numpy.linalg.arguments import inexact, matrices, shown, squares
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.linalg import (
    cholesky as _cholesky,
    eigh as _eigh,
    hessenberg as _hessenberg,
    householder as _householder,
    lu as _lu,
    qr as _qr,
    schur as _schur,
    svd as _svd,
)
from xlamini.primitives.linalg.cholesky import symmetrized
from xlamini.primitives.linalg.qdwh import qdwh
from xlamini.primitives.linalg.stacks import matmul, mH, tril, triu
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@composite(static=("lower", "overwrite_a", "check_finite"))
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The factor U with `a = U^H U` of positive definite matrices of shape (..., n, n), or with `lower` L, `a = L L^H`.

    NaN where a matrix is not positive definite. ShapeError for matrices that are not square.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = squares("cholesky", a)
    factor = _cholesky.cholesky(x if lower else mH(x), symmetrize_input=False)  # reads the lower triangle
    return factor if lower else mH(factor)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The factor of `cholesky`, and `lower`, as `cho_solve` takes them.

    >>> cho_factor(jnp.array([[4.0]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


@composite(static=("permute_l", "overwrite_a", "check_finite"))
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """P, L and U with `a = P L U`: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

    For `a` of shape (..., m, n) they have shapes (..., m, m), (..., m, k) and (..., k, n), k = min(m, n). With
    `permute_l` the result is `P L` and U.

    >>> lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]), permute_l=True)
    (Array([[0.5, 1. ],
           [1. , 0. ]], dtype=float32), Array([[2., 2.],
           [0., 1.]], dtype=float32))
    """
    x = matrices("lu", a)
    factors, _, permutation = _lu.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    lower = tril(factors[..., :k], -1) + jnp.eye(m, k, dtype=x.dtype)
    upper = triu(factors[..., :k, :])
    exchange = (permutation[..., None, :] == jnp.arange(m)[:, None]).astype(_real(x))
    return (matmul(exchange.astype(x.dtype), lower), upper) if permute_l else (exchange, lower, upper)


@composite(static=("overwrite_a", "check_finite"))
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """L (below the diagonal) and U in one matrix, and the pivots: row i was exchanged with row `pivots[i]`.

    As `lu_solve` takes them; of shapes (..., m, n) and (..., min(m, n)), for `a` of (..., m, n).

    >>> lu_factor(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[1]
    Array([1, 1], dtype=int32)
    """
    factors, pivots, _ = _lu.lu(matrices("lu_factor", a))
    return factors, pivots


@composite(static=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"))
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Q with orthonormal columns and upper triangular R with `a = Q R`; with `pivoting`, `a[:, P] = Q R` and P too.

    For `a` of shape (..., m, n) Q has m columns ("full") or min(m, n) ("economic"); "r" leaves it out. ValueError for
    another mode.

    >>> abs(qr(jnp.array([[3.0], [4.0]]), mode="economic")[1]).round()
    Array([[5.]], dtype=float32)
    """
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"qr: mode must be 'full', 'economic' or 'r', got {mode!r}")
    q, *rest = _qr.qr(matrices("qr", a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


@composite(static=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"))
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """`c Q` ("right") or `Q c` ("left") for Q of the economic `qr` of `a`, and R, and with `pivoting` the permutation.

    For `a` of shape (..., m, n), k = min(m, n), `c` has shape (..., p, m) or (..., k, p), or is a vector; with
    `conjugate` Q is taken conjugated. ValueError for another mode, ShapeError where shapes do not fit.

    >>> qr_multiply(jnp.eye(2), jnp.array([1.0, 2.0]))[1]
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if mode not in ("right", "left"):
        raise ValueError(f"qr_multiply: mode must be 'right' or 'left', got {mode!r}")
    x, y = inexact("qr_multiply", a, c)
    q, *rest = _qr.qr(matrices("qr_multiply", x), pivoting=pivoting, full_matrices=False)
    q = jnp.conj(q) if conjugate else q
    inner = q.shape[-2] if mode == "right" else q.shape[-1]
    if not y.ndim or y.shape[-1 if mode == "right" or y.ndim == 1 else -2] != inner:
        raise ShapeError(f"qr_multiply: c is {shown(y)}, Q is {shown(q)}; their sizes do not fit with mode={mode!r}")
    return (jnp.matmul(y, q) if mode == "right" else jnp.matmul(q, y), *rest)


@composite(static=("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """U, the singular values in descending order, and V^H with `a = U diag(s) V^H`; or the singular values alone.

    For `a` of shape (..., m, n) U and V are square, or without `full_matrices` have min(m, n) columns. `lapack_driver`
    changes nothing.

    >>> svd(jnp.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    return _svd.svd(matrices("svd", a), full_matrices=full_matrices, compute_uv=compute_uv)


_EIGH = ("lower", "eigvals_only", "overwrite_a", "overwrite_b", "turbo", "eigvals", "type", "check_finite")


@composite(static=_EIGH)
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues in ascending order and eigenvectors (columns) of Hermitian matrices of shape (..., n, n).

    `eigvals_only` leaves out the vectors. NotImplementedError for the generalized problem (`b`, `type`) and for a range
    of eigenvalues.

    >>> eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    if b is not None or type != 1:
        raise NotImplementedError("eigh: the generalized problem is not available; leave out `b` and `type`")
    if eigvals is not None:
        raise NotImplementedError("eigh: eigvals must be None; slice the result")
    v, w = _eigh.eigh(squares("eigh", a), lower=lower)
    return w if eigvals_only else (w, v)


@composite(static=("output",))
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """T and Z with `a = Z T Z^H`: Z unitary, T upper triangular, but for 2 x 2 blocks of a real matrix.

    With `output="complex"` both are complex, and T is triangular. On the CPU only, without derivative. ValueError for
    another output.

    >>> schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}")
    x = squares("schur", a)
    form, vectors = _schur.schur(x.astype(np.result_type(x.dtype, np.complex64)) if output == "complex" else x)
    return form, vectors


@composite(static=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """H with `a = Q H Q^H`, zero below its first subdiagonal; with `calc_q` also the unitary Q. On the CPU only.

    >>> hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x = squares("hessenberg", a)
    form, taus = _hessenberg.hessenberg(x)
    if not calc_q:
        return triu(form, -1)
    n = x.shape[-1]
    q = jnp.broadcast_to(jnp.eye(n, dtype=x.dtype), x.shape)
    if not is_less(n, 2):
        q = q.at[..., 1:, 1:].set(_householder.householder_product(form[..., 1:, :-1], taus))
    return triu(form, -1), q


@composite(static=("side", "method", "eps", "max_iterations"))
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """U with orthonormal columns (or rows) and positive semidefinite P with `a = U P`; with `side="left"`, `a = P U`.

    `a` has shape (..., m, n). The method "qdwh" (`eps` and `max_iterations` as in `lax.linalg.qdwh`) needs a matrix
    that is not wide on the right, and not tall on the left; "svd" takes any. ValueError for another side or method.

    >>> polar(jnp.array([[0.0, 2.0], [3.0, 0.0]]), method="svd")[1].round().astype(int)
    Array([[3, 0],
           [0, 2]], dtype=int32)
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {side!r}")
    x = matrices("polar", a)
    if method == "svd":
        return _polar_of_svd(x, side)
    if method != "qdwh":
        raise ValueError(f"polar: method must be 'qdwh' or 'svd', got {method!r}")
    m, n = x.shape[-2:]
    if m < n if side == "right" else m > n:
        raise NotImplementedError(f"polar: 'qdwh' does not decompose {m} x {n} on the {side}; use method='svd'")
    u, p, *_ = qdwh(x if side == "right" else mH(x), eps=eps, max_iterations=max_iterations)
    return (u, p) if side == "right" else (mH(u), p)


def _polar_of_svd(a: Any, side: str) -> tuple[Any, Any]:
    """`V S V^H` is `U^H a`, whose derivative is right also where singular values are equal."""
    u, _, vh = _svd.svd(a, full_matrices=False)
    unitary = matmul(u, vh)
    return unitary, symmetrized(matmul(mH(unitary), a) if side == "right" else matmul(a, mH(unitary)))


def _real(a: Any) -> Any:
    return jnp.finfo(a.dtype).dtype if is_complex(a) else a.dtype
