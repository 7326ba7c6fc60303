"""Factorizations of matrices: cholesky, qr, svd; and functions of singular values: rank and condition."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.core import aval_of
from xlamini.core.dtypes.limits import finfo
from xlamini.core.sizes.expression import max_size
from xlamini.numpy import reductions
from xlamini.numpy.construction import asarray
from xlamini.numpy.linalg.arguments import inexact, matrices, squares
from xlamini.primitives import abs, broadcasted_iota, convert, expand_dims, sign
from xlamini.primitives.linalg import cholesky as _cholesky, eigh as _eigh, qr as _qr, svd as _svd
from xlamini.primitives.linalg.householder import geqrf
from xlamini.primitives.linalg.stacks import mH, mT
from xlamini.primitives.reductions.sort import sort
from xlamini.primitives.shape.reorder import permuted
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

Subset = tuple[int, int]
_INDEX = np.dtype(np.int32)


class QRResult(NamedTuple):
    """A matrix with orthonormal columns, and an upper triangular one."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors (columns), singular values, right singular vectors (rows, conjugated)."""

    U: Array
    S: Array
    Vh: Array


@composite(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with `a = L L^H`, or with `upper` L^H, for matrices of shape [..., n, n].

    They must be Hermitian and positive definite: others give NaN. `symmetrize_input` takes `(a + a^H) / 2`; without it
    only the lower triangle is read. ShapeError for matrices that are not square.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    factor = _cholesky.cholesky(squares("cholesky", a), symmetrize_input=symmetrize_input)
    return mH(factor) if upper else factor


@composite(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Q with orthonormal columns and R upper triangular with `a = Q @ R`, for matrices of shape [..., m, n].

    `mode` is "reduced": Q has shape [..., m, k] and R [..., k, n], with k = min(m, n); "complete": they have shapes
    [..., m, m] and [..., m, n]; "r": R alone, as reduced; "raw": LAPACK's reflectors, of shape [..., n, m], and their
    factors, of shape [..., k]. ValueError for any other, ShapeError below rank 2.

    >>> qr(jnp.array([[3.0, 1.0], [4.0, 2.0]])).R.shape
    (2, 2)
    """
    x = matrices("qr", a)
    if mode == "raw":
        reflectors, taus = geqrf(x)
        return QRResult(mT(reflectors), taus)
    if mode not in ("reduced", "complete", "r", "full"):
        raise ValueError(f"qr: mode {mode!r} is not known; give 'reduced', 'complete', 'r' or 'raw'")
    q, r = _qr.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@composite(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: Subset | None = None,
) -> Array | SVDResult:
    """U, S and Vh with `a = U @ diag(S) @ Vh`, for matrices of shape [..., m, n]; S descends.

    U has shape [..., m, m] and Vh [..., n, n]; without `full_matrices` U has only the first min(m, n) columns, Vh as
    many rows. Without `compute_uv` the result is S alone. `hermitian` says that matrices are, which is faster.
    `subset_by_index=(start, end)` asks for those singular values only. ShapeError below rank 2.

    >>> svd(jnp.array([[0.0, 2.0], [1.0, 0.0]])).S
    Array([2., 1.], dtype=float32)
    """
    x = matrices("svd", a)
    if hermitian:
        return _by_eigenvalues(squares("svd", x), compute_uv, subset_by_index)
    how = {"full_matrices": full_matrices, "subset_by_index": subset_by_index}
    if not compute_uv:
        return _svd.svd(x, compute_uv=False, **how)
    return SVDResult(*_svd.svd(x, **how))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices of shape [..., m, n], in descending order.

    >>> svdvals(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    Array([2., 1.], dtype=float32)
    """
    return svd(x, compute_uv=False)  # type: ignore[return-value]


@composite(static=("hermitian",))
def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """The number of singular values of matrices of shape [..., m, n] above `rtol` times the largest one.

    By default `rtol` is the rounding error times max(m, n); with `tol` the bound is that itself. `hermitian` promises
    that matrices are, which is faster. The rank of a vector or a scalar is 1 if an element differs from 0, else 0.

    >>> matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int32)
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: rtol and tol cannot both be given; give one of them")
    (x,) = inexact("matrix_rank", M)
    if x.ndim < 2:
        return convert(reductions.any(x != 0), _INDEX)
    s: Any = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if rtol is None:
        rtol = float(finfo(x.dtype).eps) * max_size(*x.shape[-2:])
    given = asarray(rtol if tol is None else tol, s.dtype)
    cutoff = expand_dims(given, (aval_of(given).ndim,))
    if tol is None:
        cutoff = cutoff * reductions.max(s, -1, keepdims=True, initial=0)
    return reductions.sum(convert(s > cutoff, _INDEX), -1)


# --- helpers


def _by_eigenvalues(x: Any, compute_uv: bool, subset: Subset | None) -> Any:
    """Singular values of Hermitian matrices are the sizes of their eigenvalues."""
    if subset is not None:
        raise NotImplementedError("svd: subset_by_index cannot be given with hermitian; slice the result")
    vectors, values = _eigh.eigh(x)
    size = abs(values)
    last = aval_of(values).ndim - 1
    if not compute_uv:
        return -sort(-size, last)
    order = sort((-size, _counted(values)), last)[1]
    u = _qr.columns_taken(vectors, order)
    signs = convert(_taken(sign(values), order), u.dtype)
    return SVDResult(u, _taken(size, order), mH(u * expand_dims(signs, (last,))))


def _counted(v: Any) -> Any:
    return broadcasted_iota(_INDEX, aval_of(v).shape, aval_of(v).ndim - 1)


def _taken(v: Any, order: Any) -> Any:
    """Vectors in another order, which is one for each of them."""
    return permuted(v, order, aval_of(v).ndim - 1)
