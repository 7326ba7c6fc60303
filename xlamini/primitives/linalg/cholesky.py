"""cholesky: `A = L L^H` with L lower triangular.

The derivative is `dL = L Φ(L^-1 dA L^-H)`, where Φ keeps the lower triangle and halves the diagonal
(Murray, Differentiation of the Cholesky decomposition, 2016, eq. 8). It is a function of the lower triangle alone,
which is what the algorithms read.
"""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from xlamini.core import Cost, ShapedArray, Values, aval_of, is_zero, literal
from xlamini.lowering.ffi_calls import foreign_call
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.promotion import promoted_inexact
from xlamini.primitives.elementwise.arithmetic import add, div, mul
from xlamini.primitives.linalg.stacks import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    eye,
    hermitian,
    kernel,
    matmul,
    mH,
    status_aval,
    succeeded,
    tril,
)
from xlamini.primitives.linalg.triangular_solve import triangular_solve


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with `x = L L^H`, for Hermitian positive definite matrices of shape [..., n, n].

    A matrix that is not positive definite gives NaN. `symmetrize_input` takes `(x + x^H) / 2`; without it only the
    lower triangle is read. ShapeError for matrices that are not square.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    (x,) = promoted_inexact("cholesky", *as_matrices("cholesky", x))
    check_matrix("cholesky", aval_of(x), square=True)
    return tril(cholesky_p.bind(symmetrized(x) if symmetrize_input else x))


def symmetrized(x: Any) -> Any:
    """`(x + x^H) / 2`."""
    aval = aval_of(x)
    return div(add(x, mH(x)), literal(2, aval.dtype, aval.weak_type))


class Cholesky(MatrixOperation):
    name = "cholesky"
    kernels: tuple[str] = ("potrf",)

    def shape_rule(self, x: ShapedArray) -> ShapedArray:
        check_matrix("cholesky", x, square=True)
        return ShapedArray(x.shape, x.dtype)

    def jvp(self, primals: Values, tangents: Values) -> Any:
        factor = tril(self.bind(*primals))
        (tangent,) = tangents
        if is_zero(tangent):
            return factor, tangent
        return factor, factor_tangent(factor, hermitian(tangent))

    def lower(self, ctx: Any, x: Any) -> Any:
        (aval,) = ctx.avals_in
        if ctx.platform == "tpu":
            return ctx.op("stablehlo.cholesky", x, lower=True)
        on_gpu = {"lower": True}
        attributes = on_gpu if is_gpu(ctx) else {"uplo": np.uint8(ord("L"))}
        types = [aval, status_aval(aval)]
        factor, info = foreign_call(ctx, kernel(ctx, "potrf"), [x], types, attributes=attributes, aliases={0: 0})
        return ctx.inline(lambda status, out: succeeded(status, out)[0], info, factor, avals=types[::-1])

    def cost(self, x: ShapedArray) -> Cost:
        return super().cost(x)._replace(flops=x.size * x.shape[-1] // 3)


cholesky_p: Final = Cholesky()


def factor_tangent(factor: Any, tangent: Any) -> Any:
    """The tangent of L from that of `L L^H`, which is Hermitian."""
    aval = aval_of(factor)
    right = triangular_solve(factor, tangent, lower=True, transpose_a=True, conjugate_a=True)
    both = triangular_solve(factor, right, left_side=True, lower=True)
    halved = mul(both, add(div(eye(aval), literal(-2, aval.dtype)), literal(1, aval.dtype)))
    return matmul(factor, tril(halved))
