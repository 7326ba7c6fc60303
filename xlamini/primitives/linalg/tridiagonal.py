"""tridiagonal: a Hermitian matrix made zero but for three diagonals, by Householder reflections from both sides."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from xlamini.core import Cost, ShapedArray, Values
from xlamini.core.sizes.expression import max_size
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.elementwise.complex import part_dtype
from xlamini.primitives.linalg.spectra import decomposed
from xlamini.primitives.linalg.stacks import BOTH, MatrixOperation, as_matrices, check_matrix, kernel, one_of


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """The tridiagonal form of Hermitian matrices of shape [..., n, n], of which only one triangle is read.

    Returns a matrix with the form on its three diagonals and the vectors of the reflections beyond them, in the
    triangle that was read; the diagonal, real of shape [..., n]; the subdiagonal, real of shape [..., n - 1]; and the
    factors of the reflections, [..., n - 1]. On the CPU and GPUs, without derivative. ShapeError for matrices that are
    not square.

    >>> tridiagonal(xlamini.numpy.array([[1.0, 2.0], [2.0, 3.0]]))[1]
    Array([1., 3.], dtype=float32)
    """
    form, d, e, taus = tridiagonal_p.bind(*as_matrices("tridiagonal", a), lower=bool(lower))
    return form, d, e, taus


class Tridiagonal(MatrixOperation):
    name = "tridiagonal"
    kernels: tuple[str, str] = ("sytrd", "hetrd")
    choices: Mapping[str, Sequence[Any]] = one_of(lower=BOTH)
    multiple_results = True
    lacks: Mapping[str, str]
    lacks = dict.fromkeys(("jvp",), "a step of algorithms for eigenvalues, which have derivatives of their own")

    def shape_rule(self, x: ShapedArray, *, lower: bool) -> list[ShapedArray]:
        check_matrix("tridiagonal", x, square=True)
        *outer, n, _ = x.shape
        part, between = part_dtype(x.dtype), (*outer, max_size(n - 1, 0))
        return [
            ShapedArray(x.shape, x.dtype),
            ShapedArray((*outer, n), part),
            ShapedArray(between, part),
            ShapedArray(between, x.dtype),
        ]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> NoReturn:
        raise NotImplementedError("tridiagonal has no derivative; eigh's eigenvalues have one")

    def lower(self, ctx: Any, x: Any, *, lower: bool) -> Any:
        on_gpu = {"lower": lower}
        attributes = on_gpu if is_gpu(ctx) else {"uplo": np.uint8(ord("L" if lower else "U"))}
        return decomposed(ctx, kernel(ctx, "sytrd"), x, ctx.avals_out, attributes)

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return super().cost(x, **params)._replace(flops=4 * x.size * x.shape[-1] // 3)


tridiagonal_p: Final = Tridiagonal()
