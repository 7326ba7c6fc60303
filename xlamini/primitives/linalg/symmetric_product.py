"""symmetric_product: `alpha A A^T + beta C` for symmetric C; a GPU computes half of it."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from xlamini.core import Avals, Cost, Params, ShapedArray, ShapeError, Values, aval_of, is_zero, literal
from xlamini.core.program.form import Form, Platform
from xlamini.lowering.ffi_calls import foreign_call
from xlamini.lowering.gpu import is_gpu_platform
from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.tangent_ops import add_tangents
from xlamini.primitives.elementwise.arithmetic import add, mul
from xlamini.primitives.linalg.stacks import (
    MatrixOperation,
    as_matrices,
    check_batch,
    check_matrix,
    matmul,
    mT,
    one_of,
    shown,
    tril,
)


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Any:
    """`alpha a a^T + beta c` for real matrices `a` of shape [..., m, n] and symmetric `c` of shape [..., m, m].

    On a GPU only the lower triangle of the result counts, unless `symmetrize_output` copies it to the upper one.
    ShapeError where the shapes do not fit, TypeError for integers and complex numbers.

    >>> symmetric_product(jnp.array([[1.0, 2.0]]), jnp.array([[1.0]]), beta=2.0)
    Array([[7.]], dtype=float32)
    """
    operands = as_matrices("symmetric_product", a_matrix, c_matrix)
    out = symmetric_product_p.bind(*operands, alpha=float(alpha), beta=float(beta))
    return add(tril(out), mT(tril(out, -1))) if symmetrize_output else out


class SymmetricProduct(MatrixOperation):
    name = "symmetric_product"
    kernels: tuple[str] = ("syrk",)
    choices: Mapping[str, Sequence[Any]] = one_of(alpha=(1.0,), beta=(0.0,))  # operands of the kernel

    def shape_rule(self, a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
        check_matrix(self.name, a, accepts=FLOAT)
        check_matrix(self.name, c, square=True, accepts=FLOAT)
        check_batch(self.name, a, c, ranks=(2, 2))
        if c.shape[-1] != a.shape[-2]:
            raise ShapeError(
                f"symmetric_product: a_matrix is {shown(a)}, c_matrix is {shown(c)}; the size of "
                "c_matrix must be the number of rows of a_matrix"
            )
        return ShapedArray(c.shape, c.dtype)

    def jvp(self, primals: Values, tangents: Values, *, alpha: float, beta: float) -> Any:
        (a, c), (da, dc) = primals, tangents
        out = self.bind(a, c, alpha=alpha, beta=beta)
        dtype = aval_of(out).dtype
        if not is_zero(da):
            half = mul(matmul(da, mT(a)), literal(alpha, dtype))
            da = add(half, mT(half))
        change = dc if is_zero(dc) else mul(dc, literal(beta, dtype))
        return out, change if is_zero(da) else add_tangents(da, change)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        a, c = avals
        has_kernel = is_gpu_platform(platform.name) and a.size and c.size and c.dtype.name in ("float32", "float64")
        return None if has_kernel else Form(partial(_plain, **params))

    def lower(self, ctx: Any, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
        out = ctx.aval_out
        operands = [a, c, *(ctx.constant(v, ShapedArray((), out.dtype)) for v in (alpha, beta))]
        attributes = {"transpose": False}
        return foreign_call(
            ctx, "cusolver_syrk_ffi", operands, [out], attributes=attributes, aliases={0: 1}, row_major=True
        )[0]

    def callers(self, operands: Avals, results: Avals) -> Iterator[tuple[Avals, Params]]:
        return super().callers(operands[:2], results)

    def cost(self, a: ShapedArray, c: ShapedArray, **params: Any) -> Cost:
        return super().cost(a, c, **params)._replace(flops=2 * a.size * a.shape[-2] + 2 * c.size)


symmetric_product_p: Final = SymmetricProduct()


def _plain(a: Any, c: Any, alpha: float, beta: float) -> Any:
    dtype = aval_of(c).dtype
    product = mul(matmul(a, mT(a)), literal(alpha, dtype))
    return add(product, mul(c, literal(beta, dtype)))
