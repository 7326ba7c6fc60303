"""Eigenvalues of tridiagonal matrices."""
from __future__ import annotations

from typing import Any

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.linalg.arguments import shown
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.linalg.eigh import eigh
from xlamini.primitives.linalg.stacks import mH
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@composite(static=("eigvals_only", "select", "select_range", "tol", "key"))
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """Eigenvalues in ascending order, and eigenvectors (columns), of Hermitian matrices with three diagonals.

    `d`, of shape (..., n), is the diagonal, `e`, (..., n - 1), the subdiagonal. With `select="i"` only the eigenvalues
    with indices from `select_range[0]` to `select_range[1]`, inclusive, are returned. They are those of the full matrix
    by `eigh`, so `tol` and `key` change nothing, and there are derivatives. ShapeError where shapes do not fit,
    TypeError for integers, NotImplementedError for `select="v"`.

    >>> eigh_tridiagonal(jnp.array([1.0, 1.0]), jnp.array([1.0]), eigvals_only=True).round(3)
    Array([0., 2.], dtype=float32)
    """
    d, e = (as_operand("eigh_tridiagonal", x) for x in (d, e))
    if d.dtype != e.dtype or not jnp.issubdtype(d.dtype, jnp.inexact):
        raise TypeError(f"eigh_tridiagonal: d and e must have one float dtype, got {shown(d)} and {shown(e)}")
    if not d.ndim or not d.shape[-1] or e.shape != (*d.shape[:-1], d.shape[-1] - 1):
        raise ShapeError(f"eigh_tridiagonal: d is {shown(d)}, e is {shown(e)}; e needs one element less than d")
    chosen = _selected(select, select_range, d.shape[-1])
    v, w = eigh(_matrix(d, e), symmetrize_input=False)
    return w[..., chosen] if eigvals_only else (w[..., chosen], v[..., chosen])


def _selected(select: str, bounds: Any, n: int) -> slice:
    if select == "a":
        return slice(0, n)
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal: select='v' is not available; take all eigenvalues, and select")
    if select != "i":
        raise ValueError(f"eigh_tridiagonal: select must be 'a' or 'i', got {select!r}")
    if bounds is None or not 0 <= bounds[0] <= bounds[1] < n:
        raise ValueError(
            f"eigh_tridiagonal: with select='i' select_range must be (first, last) with 0 <= first <= last < {n}, "
            f"got {bounds}"
        )
    return slice(int(bounds[0]), int(bounds[1]) + 1)


def _matrix(d: Any, e: Any) -> Any:
    """The Hermitian matrix with this diagonal and subdiagonal."""
    n = d.shape[-1]
    below = jnp.eye(n, n - 1, -1, dtype=e.dtype) * e[..., None, :]
    lower = jnp.pad(below, [(0, 0)] * (d.ndim) + [(0, 1)])
    diagonal = d.real.astype(d.dtype) if is_complex(d) else d
    return jnp.eye(n, dtype=d.dtype) * diagonal[..., None, :] + lower + mH(lower)
