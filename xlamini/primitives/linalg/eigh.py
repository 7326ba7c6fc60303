"""eigh: eigenvalues and eigenvectors of symmetric and Hermitian matrices.

The derivative, of the triangle that is read, is first-order perturbation theory: with B = V^H dA V, the eigenvalues
change by the diagonal of B, the eigenvectors by V (F * B) with F[i, j] = 1 / (w[j] - w[i]), or 0 where these are equal.

Where only the eigenvalues are used, a program has the equation without the eigenvectors, which LAPACK computes faster.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Cost, Params, ShapedArray, ShapeError, Values, Zero, aval_of, is_zero
from xlamini.core.program.form import Form, Platform
from xlamini.lowering.ffi_calls import xla_call
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.base.promotion import promoted_inexact
from xlamini.primitives.elementwise.complex import part_dtype, real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.linalg.cholesky import symmetrized
from xlamini.primitives.linalg.spectra import decomposed, diagonal, inverse_gaps
from xlamini.primitives.linalg.stacks import (
    BOTH,
    MatrixOperation,
    as_matrices,
    check_matrix,
    hermitian,
    kernel,
    matmul,
    mH,
    one_of,
    shown,
)
from xlamini.primitives.shape.slice import slice_in_dim

Subset = tuple[int, int]


class EighImplementation(Enum):
    """Algorithms of `eigh`: QR on the CPU and on GPUs, Jacobi's on GPUs and TPUs; QDWH is there for its name.

    >>> vectors, values = lax.linalg.eigh(jnp.diag(jnp.array([3.0, 1.0])), implementation=EighImplementation.QR)
    >>> values
    Array([1., 3.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: Subset | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """Eigenvectors (columns) and real eigenvalues, in ascending order, of Hermitian matrices of shape [..., n, n].

    `symmetrize_input` takes `(x + x^H) / 2`; without it only one triangle is read: the lower one, or else the upper
    one. `sort_eigenvalues=False` leaves the order to the algorithm. `subset_by_index=(start, end)` asks for the
    eigenvalues with these indices only, which then have no derivative. ShapeError for matrices that are not square or
    a subset that is not there, NotImplementedError for an algorithm that the platform has not.

    >>> v, w = eigh(xlamini.numpy.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w
    Array([1., 2.], dtype=float32)
    """
    (x,) = promoted_inexact("eigh", *as_matrices("eigh", x))
    check_matrix("eigh", aval_of(x), square=True)
    v, w = eigh_p.bind(
        symmetrized(x) if symmetrize_input else x,
        algorithm=implementation,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=subset_by_index if subset_by_index is None else tuple(map(int, subset_by_index)),
        vectors=True,
    )
    return v, w


class Eigh(MatrixOperation):
    name = "eigh"
    kernels: tuple[str, str, str] = ("syevd", "heevd", "Eigh")
    choices: Mapping[str, Sequence[Any]] = one_of(
        lower=BOTH,
        sort_eigenvalues=BOTH,
        vectors=BOTH,
        subset_by_index=(None,),
        algorithm=(None, *EighImplementation),
    )
    multiple_results = True

    def shape_rule(
        self, x: ShapedArray, *, subset_by_index: Subset | None, vectors: bool, **params: Any
    ) -> list[ShapedArray]:
        check_matrix("eigh", x, square=True)
        *outer, n, _ = x.shape
        start, end = (0, n) if subset_by_index is None else subset_by_index
        if not 0 <= start <= end <= n:
            raise ShapeError(
                f"eigh: subset_by_index is {subset_by_index}, but {shown(x)} has {n} eigenvalues; "
                f"give (start, end) with 0 <= start <= end <= {n}"
            )
        size = end - start
        values = ShapedArray((*outer, size), part_dtype(x.dtype))
        return [ShapedArray((*outer, n, size), x.dtype), values] if vectors else [values]

    def jvp(
        self, primals: Values, tangents: Values, *, subset_by_index: Any, vectors: bool, **params: Any
    ) -> Any:
        (x,), (tangent,) = primals, tangents
        if subset_by_index not in (None, (0, aval_of(x).shape[-1])):
            raise NotImplementedError("eigh has no derivative with subset_by_index; ask for all eigenvalues, and slice")
        v, w = self.bind(x, subset_by_index=subset_by_index, vectors=True, **params)
        if is_zero(tangent):
            moved: list[Any] = [Zero(aval_of(v)), Zero(aval_of(w))]
        else:
            moved = _tangents(v, w, hermitian(tangent, params["lower"]))
        return ([v, w], moved) if vectors else ([w], moved[1:])

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        is_part = params["subset_by_index"] not in (None, (0, avals[0].shape[-1]))
        nothing = super().form(platform, avals, outs, params)
        return nothing or (Form(partial(self._subset, **params)) if is_part else None)

    def _subset(self, x: Any, *, subset_by_index: Subset, **params: Any) -> list[Any]:
        outs = self.bind(x, subset_by_index=None, **params)
        return [slice_in_dim(y, *subset_by_index, 1, -1) for y in outs]

    def lower(self, ctx: Any, x: Any, *, subset_by_index: Subset | None, vectors: bool, **params: Any) -> Any:
        (aval,) = ctx.avals_in
        types = [ShapedArray(aval.shape, aval.dtype), ShapedArray(aval.shape[:-1], part_dtype(aval.dtype))]
        outs = _lowered(ctx, x, types, vectors, **params)
        return outs if vectors else outs[1:]

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        return None if used[0] else ([True], [False, True], {**params, "vectors": False})

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return super().cost(x, **params)._replace(flops=(9 if params["vectors"] else 2) * x.size * x.shape[-1])


eigh_p: Final = Eigh()


# --- helpers


_ON_GPU = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}


def _tangents(v: Any, w: Any, tangent: Any) -> list[Any]:
    change = matmul(matmul(mH(v), tangent), v)
    dv = matmul(v, mul(convert(inverse_gaps(w), aval_of(v).dtype), change))
    dw = diagonal(change)
    return [dv, real(dw) if is_complex(dw) else dw]


def _lowered(
    ctx: Any, x: Any, types: Avals, vectors: bool, *, algorithm: Any, lower: bool, sort_eigenvalues: bool
) -> list[Any]:
    if ctx.platform == "tpu":
        _check(ctx, algorithm, EighImplementation.JACOBI)
        # XLA's own, of Jacobi: at most 100 sweeps, to a tolerance of 1e-6.
        return xla_call(ctx, "Eigh", [x], types, config=f"{int(lower)},{int(sort_eigenvalues)},100,1e-6")
    if is_gpu(ctx):
        _check(ctx, algorithm, EighImplementation.QR, EighImplementation.JACOBI)
        attributes = {"algorithm": np.uint8(_ON_GPU[algorithm]), "lower": lower}
    else:
        _check(ctx, algorithm, EighImplementation.QR)
        attributes = {"mode": np.uint8(ord("V" if vectors else "N")), "uplo": np.uint8(ord("L" if lower else "U"))}
    return decomposed(ctx, kernel(ctx, "syevd"), x, types, attributes)


def _check(ctx: Any, algorithm: Any, *available: EighImplementation) -> None:
    if algorithm is not None and algorithm not in available:
        names = " or ".join(a.name for a in available)
        raise NotImplementedError(f"eigh: {algorithm} is not available on {ctx.platform}; use {names}, or None")
