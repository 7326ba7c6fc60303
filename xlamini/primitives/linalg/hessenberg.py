"""hessenberg: a square matrix made zero below its first subdiagonal, by Householder reflections from both sides."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

import numpy as np

from xlamini.core import Cost, ShapedArray, Values
from xlamini.core.sizes.expression import SymbolicSize, max_size
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.linalg.spectra import decomposed
from xlamini.primitives.linalg.stacks import MatrixOperation, as_matrices, check_matrix, kernel, shown


def hessenberg(a: Any) -> tuple[Any, Any]:
    """The Hessenberg form of matrices of shape [..., n, n], and the factors `taus` of the reflections, [..., n - 1].

    The form is on and above the first subdiagonal; below it are the vectors of the reflections, which
    `householder_product` multiplies into a matrix. On the CPU only, without derivative. ShapeError for matrices that
    are not square.

    >>> hessenberg(xlamini.numpy.eye(2))[1]
    Array([0.], dtype=float32)
    """
    form, taus = hessenberg_p.bind(*as_matrices("hessenberg", a))
    return form, taus


class Hessenberg(MatrixOperation):
    name = "hessenberg"
    kernels: tuple[str] = ("gehrd",)
    multiple_results = True
    lacks: Mapping[str, str]
    lacks = dict.fromkeys(("jvp",), "a step of algorithms for eigenvalues, which have derivatives of their own")

    def shape_rule(self, x: ShapedArray) -> list[ShapedArray]:
        check_matrix("hessenberg", x, square=True)
        *outer, n, _ = x.shape
        return [ShapedArray(x.shape, x.dtype), ShapedArray((*outer, max_size(n - 1, 0)), x.dtype)]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> NoReturn:
        raise NotImplementedError("hessenberg has no derivative")

    def lower(self, ctx: Any, x: Any) -> Any:
        (aval,) = ctx.avals_in
        if is_gpu(ctx):
            raise NotImplementedError("hessenberg is available on the CPU only; compile with jit(..., backend='cpu')")
        if type(aval.shape[-1]) is SymbolicSize:
            raise NotImplementedError(f"hessenberg: LAPACK takes the size of matrices as a number, got {shown(aval)}")
        attributes = {"low": np.int32(1), "high": np.int32(aval.shape[-1])}
        return decomposed(ctx, kernel(ctx, "gehrd"), x, ctx.avals_out, attributes)

    def cost(self, x: ShapedArray) -> Cost:
        return super().cost(x)._replace(flops=10 * x.size * x.shape[-1] // 3)


hessenberg_p: Final = Hessenberg()
