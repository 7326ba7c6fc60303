"""lu: `P A = L U` with row exchanges, L unit lower trapezoidal and U upper trapezoidal, both in one matrix.

With L and U filled up with ones to square matrices, `L^-1 P dA U^-1` is `L^-1 dL` below the diagonal and `dU U^-1` on
and above it, which gives both derivatives.
"""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Cost, Params, ShapedArray, Values, Zero, aval_of, is_zero, literal, tangent_aval
from xlamini.core.program.form import Form, Platform
from xlamini.core.sizes.expression import min_size
from xlamini.lowering.ffi_calls import foreign_call, xla_call
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.tangent_ops import full
from xlamini.primitives.elementwise.arithmetic import add, mul, sub
from xlamini.primitives.elementwise.comparison import eq, ge
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xlamini.primitives.linalg.lu_pivots import inverse_permutation, lu_pivots_to_permutation_p
from xlamini.primitives.linalg.stacks import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    eye,
    kernel,
    matmul,
    status_aval,
    tril,
    triu,
)
from xlamini.primitives.linalg.triangular_solve import triangular_solve, triangular_solve_p
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import broadcast_in_dim, expand_dims
from xlamini.primitives.shape.slice import slice_in_dim

_INDEX = np.dtype(np.int32)
_LOWER = {"lower": True, "unit_diagonal": True}
_UPPER = {"lower": False, "unit_diagonal": False}


def lu(x: Any) -> tuple[Any, Any, Any]:
    """LU decomposition with row exchanges of matrices of shape [..., m, n].

    Returns a matrix with U on and above the diagonal and L, without its diagonal of ones, below; the pivots, int32 of
    shape [..., min(m, n)]: row i was exchanged with row `pivots[i]`; and the permutation, int32 of shape [..., m], with
    `x[permutation] = L @ U`. A singular matrix has zeros on the diagonal of U. ShapeError below rank 2, TypeError for
    integers.

    >>> lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[0]
    Array([[2. , 2. ],
           [0.5, 1. ]], dtype=float32)
    """
    factors, pivots, permutation = lu_p.bind(*as_matrices("lu", x))
    return factors, pivots, permutation


class Lu(MatrixOperation):
    name = "lu"
    kernels: tuple[str, str] = ("getrf", "LuDecomposition")
    multiple_results = True

    def shape_rule(self, x: ShapedArray) -> list[ShapedArray]:
        check_matrix("lu", x)
        *outer, m, n = x.shape
        return [
            ShapedArray(x.shape, x.dtype),
            ShapedArray((*outer, min_size(m, n)), _INDEX),
            ShapedArray((*outer, m), _INDEX),
        ]

    def jvp(self, primals: Values, tangents: Values) -> Any:
        outs = self.bind(*primals)
        (tangent,) = tangents
        zeros = [Zero(tangent_aval(aval_of(x))) for x in outs]
        if is_zero(tangent):
            return outs, zeros
        factors, _, permutation = outs
        return outs, [_tangent(factors, rows_taken(tangent, permutation)), *zeros[1:]]

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        return None if avals[0].size or platform.name == "tpu" else Form(self._of_nothing)

    def _of_nothing(self, x: Any) -> list[Any]:
        return [x, *(broadcasted_iota(_INDEX, a.shape, a.ndim - 1) for a in self.shape_rule(aval_of(x))[1:])]

    def lower(self, ctx: Any, x: Any) -> Any:
        (aval,) = ctx.avals_in
        types = [ShapedArray(a.shape, a.dtype) for a in ctx.avals_out]
        if ctx.platform == "tpu":
            return xla_call(ctx, "LuDecomposition", [x], types, api_version=2)
        results = [*types[:2], status_aval(aval)]
        factors, pivots, _ = foreign_call(ctx, kernel(ctx, "getrf"), [x], results, aliases={0: 0})
        rows = aval.shape[-2]
        pivots, permutation = ctx.inline(lambda ones: _counted_from_zero(ones, rows), pivots, avals=types[1:2])
        return [factors, pivots, permutation]

    def cost(self, x: ShapedArray) -> Cost:
        return super().cost(x)._replace(flops=x.size * min(x.shape[-2:]))


lu_p: Final = Lu()


def lu_solve(factors: Any, permutation: Any, b: Any, transpose: bool = False, conjugate: bool = False) -> Any:
    """Solve `A x = b`, or for A transposed (and conjugated), from the result of `lu` for square A; b is [..., n, k]."""
    if not transpose:
        return _solved(factors, rows_taken(b, permutation))
    how = {"transpose_a": True, "conjugate_a": conjugate}
    y = solve_with_factors(factors, b, **_UPPER, **how)
    z = solve_with_factors(factors, y, **_LOWER, **how)
    return rows_taken(z, inverse_permutation(permutation))


def lu_inverse(factors: Any, permutation: Any) -> Any:
    """The inverse of A, from the result of `lu` for square A; a comparison gives the rows of the identity in order."""
    aval = aval_of(factors)
    row = broadcast_in_dim(permutation, aval.shape, range(aval.ndim - 1))
    ones = eq(row, broadcasted_iota(_INDEX, aval.shape, aval.ndim - 1))
    return _solved(factors, convert(ones, aval.dtype))


def solve_with_factors(
    factors: Any,
    b: Any,
    *,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: bool = False,
    conjugate_a: bool = False,
) -> Any:
    """`op(L) x = b` or `op(U) x = b`, from the result of `lu`: kernels of LAPACK leave it by columns."""
    return triangular_solve_p.bind(
        factors,
        b,
        left_side=True,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a and is_complex(factors),
        unit_diagonal=unit_diagonal,
        by_columns=True,
    )


def rows_taken(x: Any, permutation: Any) -> Any:
    """Row i of the result is row `permutation[i]` of `x`, for every matrix of the stack."""
    ndim = aval_of(x).ndim
    outer = tuple(range(ndim - 2))
    return gather(
        x,
        expand_dims(permutation, (ndim - 1,)),
        GatherDimensionNumbers((ndim - 1,), (ndim - 2,), (ndim - 2,), outer, outer),
        (*(1 for _ in outer), 1, aval_of(x).shape[-1]),
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


# --- helpers


def _solved(factors: Any, b: Any) -> Any:
    """Solve `L U x = b`."""
    return solve_with_factors(factors, solve_with_factors(factors, b, **_LOWER), **_UPPER)


def _tangent(factors: Any, moved: Any) -> Any:
    """The tangent of L and U in one matrix, from that of A with its rows exchanged."""
    aval = aval_of(factors)
    *_, m, n = aval.shape
    k = min_size(m, n)
    lower = _widened(tril(slice_in_dim(factors, 0, k, axis=-1), -1), 0, m - k)
    upper = _widened(triu(slice_in_dim(factors, 0, k, axis=-2)), n - k, 0)
    if n != k:
        upper = add(upper, _ones_below(aval_of(upper), k))
    lower = add(lower, eye(aval_of(lower)))  # the solver does not read its diagonal
    left = triangular_solve(lower, moved, left_side=True, lower=True, unit_diagonal=True)
    both = triangular_solve(upper, left)
    return add(matmul(lower, tril(both, -1)), matmul(triu(both), upper))


def _widened(x: Any, rows: int, columns: int) -> Any:
    """The matrices with rows and columns of zeros added."""
    outer = [(0, 0, 0)] * (aval_of(x).ndim - 2)
    return pad(x, literal(0, aval_of(x).dtype), [*outer, (0, rows, 0), (0, columns, 0)]) if rows or columns else x


def _ones_below(aval: ShapedArray, k: int) -> Any:
    """Ones on the diagonal from row k on."""
    rows = broadcasted_iota(_INDEX, aval.shape, aval.ndim - 2)
    return mul(eye(aval), convert(ge(rows, full(aval_of(rows), k)), aval.dtype))


def _counted_from_zero(pivots: Any, rows: int) -> list[Any]:
    """LAPACK counts rows from 1."""
    pivots = sub(pivots, full(aval_of(pivots), 1))
    return [pivots, lu_pivots_to_permutation_p.bind(pivots, permutation_size=rows)]
