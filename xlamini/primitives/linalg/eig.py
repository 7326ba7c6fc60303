"""eig: eigenvalues and eigenvectors of general square matrices, complex also for real ones.

The derivative, with B = V^-1 dA V: the eigenvalues change by the diagonal of B, the eigenvectors by V (F * B) with
F[i, j] = 1 / (w[j] - w[i]), or 0 where eigenvalues are equal, and then by as much of themselves as keeps their length 1
and their largest element real, which is how LAPACK makes them unique.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np

from xlamini.core import Cost, ShapedArray, Values, Zero, aval_of, is_zero, literal
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.dtype_kinds import COMPLEX, kind_of
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.elementwise.arithmetic import abs, add, div, neg
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.complex import complex, conj, imag, real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.linalg.lu import lu, lu_solve
from xlamini.primitives.linalg.spectra import as_rows, decomposed, diagonal, inverse_gaps
from xlamini.primitives.linalg.stacks import (
    BOTH,
    MatrixOperation,
    as_matrices,
    check_matrix,
    kernel,
    matmul,
    mH,
    one_of,
)
from xlamini.primitives.reductions.arg_extrema import argmax
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import sum_over

_INDEX = np.dtype(np.int32)


class EigImplementation(Enum):
    """Who computes `eig` for a GPU: LAPACK on the host's CPU, or MAGMA; on a CPU it is LAPACK.

    >>> values, *_ = lax.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), implementation=EigImplementation.LAPACK)
    >>> values
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Eigenvalues of matrices of shape [..., n, n], then left and right eigenvectors (columns), if asked for.

    Vectors have length 1; the right ones fulfil `x @ v = w * v`, the left ones `v^H @ x = w * v^H`. All is complex. The
    derivative of vectors holds only where eigenvalues are distinct and each vector has one largest element; it must be
    asked for with `enable_eigvec_derivs`. `use_magma` is an old way to give the implementation. ShapeError for matrices
    that are not square.

    >>> eig(xlamini.numpy.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    (x,) = as_matrices("eig", x)
    if use_magma is not None and implementation is None:
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return eig_p.bind(
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )


class Eig(MatrixOperation):
    name = "eig"
    kernels: tuple[str, str] = ("geev", "cuhybrid_eig")
    choices: Mapping[str, Sequence[Any]] = one_of(
        compute_left_eigenvectors=BOTH,
        compute_right_eigenvectors=BOTH,
        enable_eigvec_derivs=(False,),
        implementation=(None, *EigImplementation),
    )
    multiple_results = True

    def shape_rule(
        self,
        x: ShapedArray,
        *,
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        **params: Any,
    ) -> list[ShapedArray]:
        check_matrix("eig", x, square=True)
        dtype = np.result_type(x.dtype, np.complex64)
        vectors = compute_left_eigenvectors + compute_right_eigenvectors
        return [ShapedArray(x.shape[:-1], dtype)] + [ShapedArray(x.shape, dtype)] * vectors

    def jvp(
        self,
        primals: Values,
        tangents: Values,
        *,
        compute_right_eigenvectors: bool,
        enable_eigvec_derivs: bool,
        **params: Any,
    ) -> Any:
        (tangent,) = tangents
        left = params["compute_left_eigenvectors"]
        if (left or compute_right_eigenvectors) and not enable_eigvec_derivs:
            raise NotImplementedError(
                "eig: the derivative of eigenvectors holds only where eigenvalues are distinct and each vector has one "
                "largest element; pass enable_eigvec_derivs=True if they are so, or ask for the eigenvalues alone"
            )
        # Eigenvalues have higher derivatives, which do not depend on how vectors are made unique.
        w, *vectors = self.bind(*primals, compute_right_eigenvectors=True, enable_eigvec_derivs=True, **params)
        outs = [w, *vectors[: left + compute_right_eigenvectors]]
        if is_zero(tangent):
            return outs, [Zero(aval_of(y)) for y in outs]
        tangent = convert(tangent, aval_of(w).dtype)
        change = _in_basis(tangent, vectors[-1])
        moved = [diagonal(change)]
        if left:
            moved.append(_of_vectors(conj(w), vectors[0], _in_basis(mH(tangent), vectors[0])))
        if compute_right_eigenvectors:
            moved.append(_of_vectors(w, vectors[-1], change))
        return outs, moved

    def lower(
        self,
        ctx: Any,
        x: Any,
        *,
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        implementation: EigImplementation | None,
        **params: Any,
    ) -> Any:
        (aval,) = ctx.avals_in
        w = ctx.avals_out[0]
        vectors = ShapedArray(aval.shape, w.dtype)
        whole = kind_of(aval.dtype) is COMPLEX
        values = [w] if whole else [ShapedArray(w.shape, aval.dtype)] * 2
        asked = (compute_left_eigenvectors, compute_right_eigenvectors)
        target, attributes = (_gpu_kernel if is_gpu(ctx) else _cpu_kernel)(ctx, whole, *asked, implementation)
        outs = decomposed(ctx, target, x, [*values, vectors, vectors], attributes, overwrites=False)
        found = outs[0] if whole else ctx.op("stablehlo.complex", *outs[:2], avals=[w])
        return [found, *(v for v, wanted in zip(outs[-2:], asked, strict=True) if wanted)]

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return super().cost(x, **params)._replace(flops=25 * x.size * x.shape[-1])


eig_p: Final = Eig()


# --- derivatives


def _in_basis(tangent: Any, vectors: Any) -> Any:
    """`V^-1 dA V`."""
    factors, _, permutation = lu(vectors)
    return lu_solve(factors, permutation, matmul(tangent, vectors))


def _of_vectors(w: Any, v: Any, change: Any) -> Any:
    """The tangent of eigenvectors that have length 1 and a real largest element."""
    aval = aval_of(v)
    dv = matmul(v, mul(inverse_gaps(w), change))
    column = (aval.ndim - 2,)
    largest = _largest(v)
    length = neg(real(sum_over(mul(conj(v), dv), column)))
    phase = neg(div(imag(sum_over(mul(largest, dv), column)), real(sum_over(mul(largest, v), column))))
    return add(dv, mul(v, as_rows(complex(length, phase), aval.shape)))


def _largest(v: Any) -> Any:
    """1 in each column at its element of largest magnitude, 0 in the others."""
    aval = aval_of(v)
    rows = broadcasted_iota(_INDEX, aval.shape, aval.ndim - 2)
    marked = eq(rows, as_rows(argmax(abs(v), aval.ndim - 2, _INDEX), aval.shape))
    return where(marked, literal(1, aval.dtype), literal(0, aval.dtype))


# --- lowering


def _cpu_kernel(ctx: Any, whole: bool, left: bool, right: bool, implementation: Any) -> tuple[str, dict[str, Any]]:
    asked = {"compute_left": left, "compute_right": right}
    return kernel(ctx, "geev"), {k: np.uint8(ord("V" if v else "N")) for k, v in asked.items()}


_MAGMA = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}


def _gpu_kernel(ctx: Any, whole: bool, left: bool, right: bool, implementation: Any) -> tuple[str, dict[str, Any]]:
    if implementation not in _MAGMA:
        raise NotImplementedError(f"eig: {implementation} is not available; use MAGMA or LAPACK, or None")
    attributes = {"left": left, "magma": _MAGMA[implementation], "right": right}
    return f"cuhybrid_eig_{'comp' if whole else 'real'}", attributes
