"""qr: `A = Q R` with Q unitary and R upper triangular; with pivoting `A[:, p] = Q R`.

The derivative: with `X = Q^H dA1 R1^-1` for the leading columns A1, as many as there are rows of R, `dQ = Q W` where W
is skew Hermitian and agrees with X below the diagonal, and `dR = Q^H dA - W R` (Walter & Lehmann, Algorithmic
differentiation of linear algebra functions, 2018). The columns of Q beyond those of A follow by that W alone.
"""
from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Cost, Params, ShapedArray, Values, Zero, aval_of, is_zero, literal, tangent_aval
from xlamini.core.program.form import Form, Platform
from xlamini.core.sizes.expression import min_size
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.arithmetic import add, mul, sub
from xlamini.primitives.elementwise.complex import complex, imag
from xlamini.primitives.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xlamini.primitives.linalg.householder import geqp3, geqrf, householder_product
from xlamini.primitives.linalg.stacks import MatrixOperation, as_matrices, check_matrix, eye, matmul, mH, tril, triu
from xlamini.primitives.linalg.triangular_solve import triangular_solve
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import expand_dims
from xlamini.primitives.shape.slice import slice_in_dim

_INDEX = np.dtype(np.int32)


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Any, ...]:
    """Q and R with `x = Q @ R` for matrices of shape [..., m, n]; with `pivoting` also p with `x[..., p] = Q @ R`.

    Q has shape [..., m, m] and R [..., m, n]; without `full_matrices` Q has only the first min(m, n) columns, R as many
    rows. With pivoting the diagonal of R decreases. `use_magma` chooses a library on GPUs. ShapeError below rank 2,
    TypeError for integers.

    >>> q, r = qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> jnp.allclose(q @ r, jnp.array([[3.0, 1.0], [4.0, 2.0]]), atol=1e-6)
    Array(True, dtype=bool)
    """
    (x,) = as_matrices("qr", x)
    return tuple(qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices), use_magma=use_magma))


class Qr(MatrixOperation):
    name = "qr"
    multiple_results = True

    def shape_rule(
        self, x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
    ) -> list[ShapedArray]:
        check_matrix("qr", x)
        *outer, m, n = x.shape
        k = m if full_matrices else min_size(m, n)
        outs = [ShapedArray((*outer, m, k), x.dtype), ShapedArray((*outer, k, n), x.dtype)]
        return [*outs, ShapedArray((*outer, n), _INDEX)] if pivoting else outs

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        q, r, *order = self.bind(*primals, **params)
        (tangent,) = tangents
        none = [Zero(tangent_aval(aval_of(p))) for p in order]
        if is_zero(tangent):
            return [q, r, *order], [Zero(aval_of(q)), Zero(aval_of(r)), *none]
        moved = columns_taken(tangent, order[0]) if order else tangent
        return [q, r, *order], [*_tangents(q, r, moved), *none]

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        return Form(partial(_decomposed, **params))

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return super().cost(x, **params)._replace(flops=4 * x.size * min(x.shape[-2:]))


qr_p: Final = Qr()


def columns_taken(x: Any, order: Any) -> Any:
    """Column j of the result is column `order[j]` of `x`, for every matrix of the stack."""
    ndim = aval_of(x).ndim
    outer = tuple(range(ndim - 2))
    return gather(
        x,
        expand_dims(order, (ndim - 1,)),
        GatherDimensionNumbers((ndim - 2,), (ndim - 1,), (ndim - 1,), outer, outer),
        (*(1 for _ in outer), aval_of(x).shape[-2], 1),
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


# --- helpers


def _decomposed(x: Any, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list[Any]:
    m, n = aval_of(x).shape[-2:]
    if pivoting:
        reflectors, order, taus = geqp3(x, use_magma)
    else:
        (reflectors, taus), order = geqrf(x), None
    if m < n:
        q = householder_product(slice_in_dim(reflectors, 0, m, axis=-1), taus)
    else:
        wide = _with_columns(reflectors, m) if full_matrices else reflectors
        q = householder_product(wide, taus)
    r = triu(reflectors if full_matrices or m < n else slice_in_dim(reflectors, 0, n, axis=-2))
    return [q, r] if order is None else [q, r, order]


def _tangents(q: Any, r: Any, tangent: Any) -> tuple[Any, Any]:
    m, n = aval_of(tangent).shape[-2:]
    k, columns = min_size(m, n), aval_of(q).shape[-1]
    leading = slice_in_dim(slice_in_dim(r, 0, k, axis=-1), 0, k, axis=-2)
    moved = triangular_solve(leading, slice_in_dim(tangent, 0, k, axis=-1))
    inner = matmul(mH(q), moved)
    turn = _skew(_with_columns(inner, columns))
    if m < n:
        dr = triu(sub(matmul(mH(q), tangent), matmul(turn, r)))
    else:  # Q^H dA is `inner` times R, and nothing is below the diagonal of `inner` without the turn
        dr = matmul(sub(inner, slice_in_dim(turn, 0, n, axis=-1)), leading)
    if columns == m:
        return matmul(q, turn), dr
    return add(matmul(q, sub(turn, inner)), moved), dr


def _skew(x: Any) -> Any:
    """Skew Hermitian matrices that agree with `x` below the diagonal, and on it in the imaginary part."""
    below = tril(x, -1)
    skew = sub(below, mH(below))
    if not is_complex(x):
        return skew
    angles = imag(x)
    return add(skew, mul(eye(aval_of(x)), complex(zeros(aval_of(angles)), angles)))


def _with_columns(x: Any, count: int) -> Any:
    """The matrices with columns of zeros added."""
    more = count - aval_of(x).shape[-1]
    outer = [(0, 0, 0)] * (aval_of(x).ndim - 1)
    return pad(x, literal(0, aval_of(x).dtype), [*outer, (0, more, 0)]) if more else x
