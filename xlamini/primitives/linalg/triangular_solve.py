"""triangular_solve: `op(A) X = B` or `X op(A) = B` with A triangular.

The solution is linear in B, so its transpose is another solve; in A its derivative is `-A^-1 dA A^-1 B`.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Factors,
    Params,
    ShapedArray,
    ShapeError,
    Values,
    alike,
    aval_of,
    in_front,
    is_linear,
    is_zero,
)
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import Sharding
from xlamini.lowering.ffi_calls import foreign_call
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.tangent_ops import add_tangents
from xlamini.primitives.elementwise.arithmetic import neg
from xlamini.primitives.elementwise.complex import conj
from xlamini.primitives.linalg.stacks import (
    BOTH,
    MatrixOperation,
    as_matrices,
    check_batch,
    check_matrix,
    kernel,
    matmul,
    mT,
    one_of,
    shown,
    tril,
    triu,
    turned,
    turned_aval,
)
from xlamini.primitives.shape.shape import expand_dims, moveaxis, reshape, squeeze

_HALVES = ("bfloat16", "float16")


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Solve `x op(a) = b`, or with `left_side` `op(a) x = b`, for triangular matrices `a` of shape [..., n, n].

    `op` transposes or conjugates `a`, or both. One triangle is read: the lower one if `lower`, else the upper one;
    with `unit_diagonal` its diagonal counts as ones. `b` has shape [..., m, n], with `left_side` [..., n, m], or
    [..., n] for one right-hand side. ShapeError where the shapes do not fit, TypeError where dtypes differ.

    >>> triangular_solve(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([[4.0], [3.0]]), left_side=True, lower=True)
    Array([[2.],
           [1.]], dtype=float32)
    """
    a, b = as_matrices("triangular_solve", a, b)
    vector = aval_of(b).ndim == aval_of(a).ndim - 1
    axis = aval_of(b).ndim if left_side else aval_of(b).ndim - 1
    x = triangular_solve_p.bind(
        a,
        expand_dims(b, (axis,)) if vector else b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a) and is_complex(a),
        unit_diagonal=bool(unit_diagonal),
        by_columns=False,
    )
    return squeeze(x, (axis,)) if vector else x


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    a, b = avals
    solved = b.ndim - (2 if params["left_side"] else 1)
    columns = alike([b], outs, [solved])
    return columns._replace(operands=[*in_front([a], [], a.ndim - 2).operands, *columns.operands])


class TriangularSolve(MatrixOperation):
    """With `by_columns`, `a` lies by columns in memory, where the CPU's kernels read it without a copy."""

    name = "triangular_solve"
    kernels: tuple[str] = ("trsm",)
    sharding: Sharding = Sharding(factors=_factors)
    choices: Mapping[str, Sequence[Any]] = one_of(
        left_side=BOTH, lower=BOTH, transpose_a=BOTH, conjugate_a=BOTH, unit_diagonal=BOTH, by_columns=BOTH
    )

    def shape_rule(self, a: ShapedArray, b: ShapedArray, *, left_side: bool, **params: Any) -> ShapedArray:
        check_matrix(self.name, a, square=True)
        if b.ndim >= 2:
            check_batch(self.name, a, b, ranks=(2, 2))
        if b.ndim < 2 or b.shape[-2 if left_side else -1] != a.shape[-1]:
            side = "rows" if left_side else "columns"
            raise ShapeError(
                f"triangular_solve: a is {shown(a)}, b is {shown(b)}; with left_side={left_side} b needs as many "
                f"{side} as a has"
            )
        return ShapedArray(b.shape, b.dtype)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        (a, b), (da, db) = primals, tangents
        x = self.bind(a, b, **params)
        change = db if is_zero(db) else self.bind(a, db, **params)
        return x, change if is_zero(da) else add_tangents(_of_matrix(a, x, da, **params), change)

    def transpose(self, ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> Values:
        assert is_linear(b)
        return [None, self.bind(a, ct, transpose_a=not transpose_a, **params)]

    def batch(self, axis: Axis, operands: Any, dims: Any, **params: Any) -> Any:
        (a, b), (of_a, of_b) = operands, dims
        if of_a is None:
            return self._with_more_sides(a, b, of_b, **params)
        return self.bind(*with_batch_first((a, b), dims, axis.size), **params), 0

    def _with_more_sides(self, a: Any, b: Any, dim: int, *, left_side: bool, **params: Any) -> Any:
        """Solve for a whole batch with one matrix: the batch becomes more right-hand sides."""
        last = aval_of(b).ndim - 1
        place = last if left_side else last - 2
        wide = moveaxis(b, dim, place)
        shape = aval_of(wide).shape
        first = last - 1 if left_side else last - 2
        merged = (*shape[:first], shape[first] * shape[first + 1], *shape[first + 2 :])
        x = self.bind(a, reshape(wide, merged), left_side=left_side, **params)
        return reshape(x, shape), place

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        by_columns = params["by_columns"] and _is_by_kernel(platform.name, avals[1])
        conjugates = params["conjugate_a"] and (by_columns or not params["transpose_a"])
        nothing = super().form(platform, avals, outs, params)
        return nothing or (Form(partial(self._of_conjugate, **params)) if conjugates else None)

    def _of_conjugate(self, a: Any, b: Any, **params: Any) -> Any:
        return self.bind(conj(a), b, **{**params, "conjugate_a": False})

    def lower(self, ctx: Any, a: Any, b: Any, **params: Any) -> Any:
        if _is_by_kernel(ctx.platform, ctx.aval_out):
            return _by_kernel(ctx, a, b, **params)
        return ctx.op(
            "stablehlo.triangular_solve",
            a,
            b,
            left_side=params["left_side"],
            lower=params["lower"],
            unit_diagonal=params["unit_diagonal"],
            transpose_a=f"#stablehlo<transpose {_how(**params)}>",
        )

    def callers(self, operands: Avals, results: Avals) -> Iterator[tuple[Avals, Params]]:
        a, b = operands
        return super().callers([a, turned_aval(b)], results)

    def cost(self, a: ShapedArray, b: ShapedArray, **params: Any) -> Cost:
        return super().cost(a, b, **params)._replace(flops=b.size * a.shape[-1])


triangular_solve_p: Final = TriangularSolve()


# --- helpers


def _of_matrix(a: Any, x: Any, da: Any, *, left_side: bool, **params: Any) -> Any:
    """`-op(A)^-1 op(dA) X`, or `-X op(dA) op(A)^-1`, with the triangle of dA that is read."""
    below = -1 if params["unit_diagonal"] else 0
    triangle = tril(da, below) if params["lower"] else triu(da, -below)
    moved = mT(triangle) if params["transpose_a"] else triangle
    moved = conj(moved) if params["conjugate_a"] else moved
    product = matmul(moved, x) if left_side else matmul(x, moved)
    return triangular_solve_p.bind(a, neg(product), left_side=left_side, **params)


def _is_by_kernel(platform: str, b: ShapedArray) -> bool:
    return platform == "cpu" and b.dtype.name not in _HALVES


def _how(*, transpose_a: bool, conjugate_a: bool, **params: Any) -> str:
    if not transpose_a:
        return "NO_TRANSPOSE"
    return "ADJOINT" if conjugate_a else "TRANSPOSE"


def _by_kernel(ctx: Any, a: Any, b: Any, *, left_side: bool, unit_diagonal: bool, **params: Any) -> Any:
    """Lower to BLAS's trsm, which reads columns: rows read as columns are the system `X^T op(A)^T = B^T`."""
    side = ctx.avals_in[1]
    matrix, lower, how = _read_by_columns(ctx, a, **params)
    attributes = {
        "side": np.uint8(ord("R" if left_side else "L")),
        "uplo": np.uint8(ord("L" if lower else "U")),
        "trans_x": np.uint8(ord(how)),
        "diag": np.uint8(ord("U" if unit_diagonal else "N")),
    }
    operands = [matrix, turned(ctx, b, side)]
    out = turned_aval(side)
    (x,) = foreign_call(ctx, kernel(ctx, "trsm"), operands, [out], attributes=attributes, aliases={0: 1})
    return turned(ctx, x, out)


def _read_by_columns(
    ctx: Any, a: Any, *, lower: bool, transpose_a: bool, conjugate_a: bool, by_columns: bool
) -> tuple[Any, bool, str]:
    """M without a copy of A, whether it is lower triangular, and which of M, M^T and M^H is `op(A)^T`: N, T or C."""
    aval = ctx.avals_in[0]
    if not by_columns:
        return turned(ctx, a, aval), not lower, "C" if conjugate_a else "T" if transpose_a else "N"
    return a, lower, "N" if transpose_a else "T"
