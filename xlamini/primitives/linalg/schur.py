"""schur: A = Z T Z^H with unitary Z and upper triangular T, which of a real matrix may have 2 x 2 blocks."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from xlamini.core import Cost, ShapedArray, Values
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.dtype_kinds import COMPLEX, kind_of
from xlamini.primitives.linalg.spectra import decomposed
from xlamini.primitives.linalg.stacks import (
    BOTH,
    MatrixOperation,
    as_matrices,
    check_matrix,
    kernel,
    one_of,
    status_aval,
)


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> Any:
    """T and Z with `x = Z T Z^H`, of matrices of shape [..., n, n]: Schur's form, as a list; T alone without vectors.

    On the CPU only, without derivative. ShapeError for matrices that are not square; NotImplementedError where
    eigenvalues are to be sorted.

    >>> schur(xlamini.numpy.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur: eigenvalues cannot be sorted; leave out sort_eig_vals and select_callable"
        )
    return schur_p.bind(
        *as_matrices("schur", x),
        compute_schur_vectors=bool(compute_schur_vectors),
        select_callable=select_callable,
        sort_eig_vals=bool(sort_eig_vals),
    )


class Schur(MatrixOperation):
    name = "schur"
    kernels: tuple[str] = ("gees",)
    choices: Mapping[str, Sequence[Any]]
    choices = one_of(compute_schur_vectors=BOTH, select_callable=(None,), sort_eig_vals=(False,))
    multiple_results = True
    lacks: Mapping[str, str] = dict.fromkeys(("jvp",), "blocks and their order jump with the matrix")

    def shape_rule(self, x: ShapedArray, *, compute_schur_vectors: bool, **params: Any) -> list[ShapedArray]:
        check_matrix("schur", x, square=True)
        return [ShapedArray(x.shape, x.dtype)] * (1 + compute_schur_vectors)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> NoReturn:
        raise NotImplementedError("schur has no derivative; eig's eigenvalues have one")

    def lower(self, ctx: Any, x: Any, *, compute_schur_vectors: bool, **params: Any) -> Any:
        (aval,) = ctx.avals_in
        if is_gpu(ctx):
            raise NotImplementedError("schur is available on the CPU only; compile with jit(..., backend='cpu')")
        matrix, values = ShapedArray(aval.shape, aval.dtype), ShapedArray(aval.shape[:-1], aval.dtype)
        eigenvalues = [values] if kind_of(aval.dtype) is COMPLEX else [values] * 2
        attributes = {"mode": np.uint8(ord("V" if compute_schur_vectors else "N")), "sort": np.uint8(ord("N"))}
        results = [matrix, matrix, *eigenvalues, status_aval(aval)]  # the last one counts the selected eigenvalues
        outs = decomposed(ctx, kernel(ctx, "gees"), x, results, attributes, kept=1 + compute_schur_vectors)
        return outs

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return super().cost(x, **params)._replace(flops=25 * x.size * x.shape[-1])


schur_p: Final = Schur()
