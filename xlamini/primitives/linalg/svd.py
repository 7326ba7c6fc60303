"""svd: singular values and vectors, A = U diag(s) V^H.

The derivative, with B = U^H dA V: the singular values change by the real diagonal of B, the vectors by rotations among
themselves, U (E + O) and V (E - O) with E = (B + B^H) / 2 (s[j] - s[i]) and O = (B - B^H) / 2 (s[j] + s[i]), and by
what leads out of the space that they span. Where a divisor is 0, so is the quotient. Vectors that complete U or V to a
square are determined as a space alone: they follow it, and do not turn within it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Cost, Params, ShapedArray, ShapeError, Values, Zero, aval_of, is_zero, literal
from xlamini.core.program.form import Form, Platform
from xlamini.core.sizes.expression import min_size
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.arithmetic import add, neg, sub
from xlamini.primitives.elementwise.complex import part_dtype, real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.linalg.polar_svd import svd_by_polar
from xlamini.primitives.linalg.spectra import (
    as_columns,
    as_rows,
    decomposed,
    diagonal,
    inverse,
    inverse_gaps,
    on_diagonal,
)
from xlamini.primitives.linalg.stacks import (
    BOTH,
    MatrixOperation,
    as_matrices,
    check_matrix,
    eye,
    kernel,
    matmul,
    mH,
    mT,
    one_of,
    shown,
)
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.shape import sum_over
from xlamini.primitives.shape.slice import slice_in_dim

Subset = tuple[int, int]


class SvdAlgorithm(Enum):
    """Algorithms of `svd`: QR and DIVIDE_AND_CONQUER (the default) on the CPU; QR, JACOBI (the default up to a size of
    1024) and POLAR on a GPU; POLAR on a TPU.

    >>> u, s, vt = lax.linalg.svd(jnp.diag(jnp.array([1.0, 3.0])), algorithm=SvdAlgorithm.QR)
    >>> s
    Array([3., 1.], dtype=float32)
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: Subset | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """U, the singular values in descending order, and V^H, of matrices of shape [..., m, n]; `x = U diag(s) V^H`.

    Without `full_matrices` there are as many columns of U and rows of V^H as singular values, min(m, n); with it both
    are square, and derivatives hold for what does not depend on how they were completed. Without `compute_uv` the
    result is the singular values alone. `subset_by_index=(start, end)` asks for those with these indices only, which
    then have no derivative. ShapeError for a rank below 2 or a subset that is not there, NotImplementedError for an
    algorithm that the platform has not.

    >>> svd(xlamini.numpy.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    (x,) = as_matrices("svd", x)
    check_matrix("svd", aval_of(x))
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("svd: full_matrices and subset_by_index cannot both be given; pass full_matrices=False")
    outs = svd_p.bind(
        x,
        algorithm=algorithm,
        compute_uv=bool(compute_uv),
        full_matrices=bool(full_matrices),
        subset_by_index=subset_by_index if subset_by_index is None else tuple(map(int, subset_by_index)),
    )
    return (outs[1], outs[0], outs[2]) if compute_uv else outs[0]


class Svd(MatrixOperation):
    name = "svd"
    kernels: tuple[str, str] = ("gesdd", "gesvd")
    choices: Mapping[str, Sequence[Any]] = one_of(
        compute_uv=BOTH, full_matrices=BOTH, subset_by_index=(None,), algorithm=(None, *SvdAlgorithm)
    )
    multiple_results = True

    def shape_rule(
        self, x: ShapedArray, *, compute_uv: bool, full_matrices: bool, subset_by_index: Subset | None, algorithm: Any
    ) -> list[ShapedArray]:
        check_matrix("svd", x)
        *outer, m, n = x.shape
        count = min_size(m, n)
        start, end = subset_by_index or (0, count)
        if subset_by_index is not None and not 0 <= start <= end <= count:
            raise ShapeError(
                f"svd: subset_by_index is {subset_by_index}, but {shown(x)} has {count} singular values; "
                f"give (start, end) with 0 <= start <= end <= {count}"
            )
        size = end - start
        rows, columns = (m, n) if full_matrices else (size, size)
        s = ShapedArray((*outer, size), part_dtype(x.dtype))
        u, vh = ShapedArray((*outer, m, rows), x.dtype), ShapedArray((*outer, columns, n), x.dtype)
        return [s, u, vh] if compute_uv else [s]

    def jvp(
        self, primals: Values, tangents: Values, *, compute_uv: bool, full_matrices: bool, **params: Any
    ) -> Any:
        (x,), (tangent,) = primals, tangents
        _check_differentiable(aval_of(x), params["subset_by_index"])
        s, u, vh = self.bind(x, compute_uv=True, full_matrices=full_matrices and compute_uv, **params)
        if is_zero(tangent):
            moved = [Zero(aval_of(y)) for y in (s, u, vh)]
        else:
            moved = _tangents_of_all(s, u, mH(vh), tangent) if compute_uv else [_tangent_of_values(u, vh, tangent)]
        return ([s, u, vh], moved) if compute_uv else ([s], moved[:1])

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        if avals[0].size == 0:
            return Form(partial(self._of_nothing, **params))
        if params["subset_by_index"] is not None:
            return Form(partial(self._subset, **params))
        if platform.name != "tpu":
            return None
        _chosen(platform.name, {None: "", SvdAlgorithm.DEFAULT: "", SvdAlgorithm.POLAR: ""}, params["algorithm"])
        full, count = params["full_matrices"] and params["compute_uv"], 3 if params["compute_uv"] else 1
        return Form(lambda x: svd_by_polar(x, full)[:count])

    def _of_nothing(self, x: Any, **params: Any) -> list[Any]:
        outs = self.shape_rule(aval_of(x), **params)
        return [eye(a) if a.ndim == aval_of(x).ndim else zeros(a) for a in outs]

    def _subset(self, x: Any, *, subset_by_index: Subset, **params: Any) -> list[Any]:
        outs, along = self.bind(x, subset_by_index=None, **params), (-1, -1, -2)
        return [slice_in_dim(y, *subset_by_index, 1, axis) for y, axis in zip(outs, along, strict=False)]

    def lower(
        self, ctx: Any, x: Any, *, compute_uv: bool, full_matrices: bool, subset_by_index: None, algorithm: Any
    ) -> Any:
        aval = ctx.avals_in[0]
        full = full_matrices and compute_uv
        whole = self.shape_rule(aval, compute_uv=True, full_matrices=full, subset_by_index=None, algorithm=algorithm)
        outs = (_on_gpu if is_gpu(ctx) else _on_cpu)(ctx, x, whole, compute_uv, full, algorithm)
        return outs if compute_uv else outs[:1]

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return super().cost(x, **params)._replace(flops=20 * x.size * min(x.shape[-2:]))


svd_p: Final = Svd()


# --- derivatives


def _check_differentiable(x: ShapedArray, subset: Any) -> None:
    if subset not in (None, (0, min_size(*x.shape[-2:]))):
        raise NotImplementedError("svd has no derivative with subset_by_index; ask for all, and slice")


def _tangent_of_values(u: Any, vh: Any, dx: Any) -> Any:
    """That of s alone: the diagonal of U^H dx V takes one product of matrices."""
    parts = mul(mT(u), matmul(vh, mH(dx)))
    return sum_over(real(parts) if is_complex(parts) else parts, (aval_of(parts).ndim - 1,))


def _tangents_of_all(s: Any, u: Any, v: Any, dx: Any) -> list[Any]:
    """The tangents of s, U and V^H, of which U or V may have more columns than there are singular values."""
    count = aval_of(s).shape[-1]
    ds, du, dvh = _tangents(s, slice_in_dim(u, 0, count, 1, -1), slice_in_dim(v, 0, count, 1, -1), dx)
    return [ds, _completed(du, u), mH(_completed(mH(dvh), v))]


def _completed(moved: Any, u: Any) -> Any:
    """The tangent of all columns from that of the first: the others stay orthogonal to them."""
    count, size = aval_of(moved).shape[-1], aval_of(u).shape[-1]
    if count == size:
        return moved
    first, others = slice_in_dim(u, 0, count, 1, -1), slice_in_dim(u, count, size, 1, -1)
    follow = neg(matmul(first, matmul(mH(moved), others)))
    return concatenate([moved, follow], aval_of(u).ndim - 1)


def _tangents(s: Any, u: Any, v: Any, dx: Any) -> list[Any]:
    """The tangents of s, U and V^H."""
    ds = matmul(matmul(mH(u), dx), v)
    moved = diagonal(ds)
    moved = real(moved) if is_complex(moved) else moved
    turned = mH(ds)
    between, apart = _divided(add(ds, turned), inverse_gaps(s)), _divided(sub(ds, turned), _inverse_sums(s))
    inner = add(between, apart)
    du = matmul(u, add(inner, _phases(s, ds)) if is_complex(ds) else inner)
    dv = matmul(v, sub(between, apart))
    return [moved, _with_rest(du, u, matmul(dx, v), s), mH(_with_rest(dv, v, matmul(mH(dx), u), s))]


def _divided(x: Any, divisors: Any) -> Any:
    dtype = aval_of(x).dtype
    return mul(mul(literal(0.5, dtype), x), convert(divisors, dtype))


def _inverse_sums(s: Any) -> Any:
    """`1 / (s[j] + s[i])` off the diagonal, 0 on it."""
    shape = (*aval_of(s).shape, aval_of(s).shape[-1])
    found = inverse(add(as_rows(s, shape), as_columns(s, shape)), s)
    return where(on_diagonal(shape), literal(0, aval_of(s).dtype), found)


def _phases(s: Any, ds: Any) -> Any:
    """The imaginary phase of each column of U, on a diagonal; for real matrices it is 0."""
    shape, dtype = aval_of(ds).shape, aval_of(ds).dtype
    turned = mul(literal(0.5, dtype), sub(ds, mH(ds)))
    spread = where(on_diagonal(shape), as_rows(inverse(s, s), shape), literal(0, aval_of(s).dtype))
    return mul(turned, convert(spread, dtype))


def _with_rest(du: Any, u: Any, image: Any, s: Any) -> Any:
    """`du` with the part of a tangent that leads out of the space of U's columns, where they do not span all."""
    aval = aval_of(u)
    if aval.shape[-2] == aval.shape[-1]:
        return du
    rest = sub(image, matmul(u, matmul(mH(u), image)))
    return add(du, mul(rest, convert(as_rows(inverse(s, s), aval.shape), aval.dtype)))


# --- lowering


_CPU = {
    None: "gesdd",
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}


def _on_cpu(
    ctx: Any, x: Any, whole: Avals, vectors: bool, full_matrices: bool, algorithm: Any
) -> list[Any]:
    aval = ctx.avals_in[0]
    target = kernel(ctx, _chosen(ctx.platform, _CPU, algorithm))
    mode = ("A" if full_matrices else "S") if vectors else "N"
    return decomposed(ctx, target, x, [aval, *whole], {"mode": np.uint8(ord(mode))})[1:]


_JACOBI_BATCHES = 32
"""Small matrices of a batch are decomposed at once, by a kernel that gives all of U and V."""

_GPU = {SvdAlgorithm.QR: "gesvd", SvdAlgorithm.JACOBI: "gesvdj", SvdAlgorithm.POLAR: "gesvdp"}


def _on_gpu(
    ctx: Any, x: Any, whole: Avals, vectors: bool, full_matrices: bool, algorithm: Any
) -> list[Any]:
    aval = ctx.avals_in[0]
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        algorithm = SvdAlgorithm.JACOBI if max(aval.shape[-2:]) <= 1024 else SvdAlgorithm.QR
    target = kernel(ctx, _chosen(ctx.platform, _GPU, algorithm))
    if algorithm is SvdAlgorithm.QR:
        return _gesvd(ctx, target, x, whole, vectors, full_matrices)
    *outer, m, n = aval.shape
    size = min(m, n)
    full = full_matrices or (algorithm is SvdAlgorithm.JACOBI and size <= _JACOBI_BATCHES)
    u = ShapedArray((*outer, m, m if full else size), aval.dtype)
    v = ShapedArray((*outer, n, n if full else size), aval.dtype)
    attributes = {"compute_uv": vectors, "full_matrices": full}
    _, s, *both = decomposed(ctx, target, x, [aval, whole[0], u, v], attributes)
    return [s, *ctx.inline(lambda u, v: _cut(u, v, whole), *both, avals=[u, v])]


def _gesvd(
    ctx: Any, target: str, x: Any, whole: Avals, vectors: bool, full_matrices: bool
) -> list[Any]:
    """Lower to LAPACK's gesvd for matrices at least as tall as wide; others are passed transposed, by their layout."""
    aval = ctx.avals_in[0]
    wide = aval.shape[-2] < aval.shape[-1]
    s, u, vh = whole
    attributes = {"compute_uv": vectors, "full_matrices": full_matrices, "transposed": wide}
    types = [aval, s, vh, u] if wide else [aval, s, u, vh]
    _, s, left, right = decomposed(ctx, target, x, types, attributes, row_major=wide)
    return [s, right, left] if wide else [s, left, right]


def _cut(u: Any, v: Any, whole: Avals) -> list[Any]:
    """Truncate U and V^H to the number of vectors requested: rows of V^H are what XLA stores, and frees V."""
    columns, rows = whole[1].shape[-1], whole[2].shape[-2]
    return [slice_in_dim(u, 0, columns, 1, -1), slice_in_dim(mH(v), 0, rows, 1, -2)]


def _chosen(platform: str, known: dict[Any, str], algorithm: Any) -> str:
    if algorithm not in known:
        names = ", ".join(a.name for a in known if a is not None)
        raise NotImplementedError(f"svd: {algorithm} is not available on {platform}; use one of {names}, or None")
    return known[algorithm]
