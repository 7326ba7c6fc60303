"""cholesky_update: R with `R^T R = A + w w^T` from the one of A, by a rotation for every row."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Cost, Params, ShapedArray, ShapeError, Values, aval_of, is_zero, literal
from xlamini.core.program.form import Form, Platform
from xlamini.lowering.control_flow import while_loop
from xlamini.lowering.ffi_calls import foreign_call
from xlamini.lowering.gpu import is_gpu_platform
from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.tangent_ops import full, instantiated
from xlamini.primitives.elementwise.arithmetic import add, div, mul, sub
from xlamini.primitives.elementwise.comparison import eq, lt
from xlamini.primitives.elementwise.power import sqrt
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_p
from xlamini.primitives.linalg.cholesky import factor_tangent
from xlamini.primitives.linalg.stacks import (
    MatrixOperation,
    as_matrices,
    check_batch,
    check_matrix,
    matmul,
    mT,
    shown,
    triu,
)
from xlamini.primitives.shape.shape import broadcast_in_dim, expand_dims, squeeze

_COUNTER = ShapedArray((), np.dtype(np.int32))


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper triangular R with `R^T R = r_matrix^T r_matrix + w w^T`, in time of order n^2.

    `r_matrix` is upper triangular, of shape [..., n, n], `w_vector` real, of shape [..., n]; else ShapeError, or
    TypeError for integers and complex numbers.

    >>> cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    return cholesky_update_p.bind(*as_matrices("cholesky_update", r_matrix, w_vector))


class CholeskyUpdate(MatrixOperation):
    name = "cholesky_update"
    kernels: tuple[str] = ("cu_cholesky_update",)

    def shape_rule(self, r: ShapedArray, w: ShapedArray) -> ShapedArray:
        check_matrix(self.name, r, square=True, accepts=FLOAT)
        check_batch(self.name, r, w, ranks=(2, 1))
        if w.shape[-1] != r.shape[-1]:
            raise ShapeError(f"cholesky_update: r_matrix is {shown(r)}, w_vector is {shown(w)}; their sizes must agree")
        return ShapedArray(r.shape, r.dtype)

    def jvp(self, primals: Values, tangents: Values) -> Any:
        out = self.bind(*primals)
        if all(map(is_zero, tangents)):
            return out, tangents[0]
        r, w = triu(primals[0]), primals[1]
        dr, dw = triu(instantiated(tangents[0])), instantiated(tangents[1])
        product = matmul(mT(dr), r)
        outer = mul(_as_rows(w, r), _as_columns(dw, r))
        half = add(product, outer)
        return out, mT(factor_tangent(mT(out), add(half, mT(half))))

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        nothing = super().form(platform, avals, outs, params)
        rotated = None if _has_kernel(platform.name, avals[0]) else Form(lambda r, w: triu(self.bind(r, w)))
        return nothing or rotated

    def lower(self, ctx: Any, r: Any, w: Any) -> Any:
        types = ctx.avals_in
        if _has_kernel(ctx.platform, types[0]):
            return foreign_call(ctx, "cu_cholesky_update_ffi", [r, w], types, aliases={0: 0, 1: 1}, row_major=True)[0]
        size = types[1].shape[-1]

        def holds(i: Any, *_: Any) -> list[Any]:
            return [ctx.inline(lambda n: lt(n, literal(size, _COUNTER.dtype)), i, avals=[_COUNTER])]

        def turn(*state: Any) -> list[Any]:
            return ctx.inline(_rotated, *state, avals=[_COUNTER, *types])

        return while_loop(ctx, [ctx.constant(0, _COUNTER), r, w], holds, turn)[1]

    def cost(self, r: ShapedArray, w: ShapedArray) -> Cost:
        return super().cost(r, w)._replace(flops=6 * r.size)


cholesky_update_p: Final = CholeskyUpdate()


# --- helpers


def _has_kernel(platform: str, r: ShapedArray) -> bool:
    return is_gpu_platform(platform) and r.ndim == 2


def _rotated(i: Any, r: Any, w: Any) -> list[Any]:
    """Row i of R and w, turned so that element i of w vanishes; if it is 0 already nothing is turned."""
    zero, outer = literal(0, _COUNTER.dtype), aval_of(w).ndim - 1
    at_row, at_element = [zero] * outer + [i, zero], [zero] * outer + [i]
    batch, n = aval_of(w).shape[:-1], aval_of(w).shape[-1]
    row = dynamic_slice_p.bind(r, *at_row, slice_sizes=(*batch, 1, n))
    flat = squeeze(row, (outer,))
    x, y = (dynamic_slice_p.bind(v, *at_element, slice_sizes=(*batch, 1)) for v in (flat, w))
    length = sqrt(add(mul(x, x), mul(y, y)))
    aval = aval_of(length)
    still = eq(y, full(aval, 0))
    safe = select_n(still, length, full(aval, 1))
    c, s = select_n(still, div(x, safe), full(aval, 1)), div(y, safe)
    c, s = (broadcast_in_dim(v, aval_of(w).shape, range(outer + 1)) for v in (c, s))
    new = expand_dims(add(mul(c, flat), mul(s, w)), (outer,))
    r = dynamic_update_slice_p.bind(r, new, *at_row)
    return [add(i, literal(1, _COUNTER.dtype)), r, sub(mul(c, w), mul(s, flat))]


def _as_rows(v: Any, like: Any) -> Any:
    """Element i everywhere in row i."""
    shape = aval_of(like).shape
    return broadcast_in_dim(v, shape, range(len(shape) - 1))


def _as_columns(v: Any, like: Any) -> Any:
    """Element j everywhere in column j."""
    shape = aval_of(like).shape
    return broadcast_in_dim(v, shape, (*range(len(shape) - 2), len(shape) - 1))
