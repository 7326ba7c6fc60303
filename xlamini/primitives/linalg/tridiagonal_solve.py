"""tridiagonal_solve: `A X = B` with A given by three diagonals.

The solution is linear in B, so its transpose is a solve with the outer diagonals exchanged; in A its derivative is
`-A^-1 dA X`. On a TPU it is Gaussian elimination without row exchanges (Thomas' algorithm), a loop each way.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import Cost, ShapedArray, ShapeError, Values, aval_of, is_linear, is_zero, literal
from xlamini.core.sharding.facet import stacked_dimensions
from xlamini.lowering.ffi_calls import foreign_call
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.tangent_ops import add_tangents, instantiated
from xlamini.primitives.elementwise.arithmetic import add, mul, neg
from xlamini.primitives.linalg.stacks import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    kernel,
    one_of,
    shown,
    succeeded,
)
from xlamini.primitives.linalg.thomas import thomas
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import broadcast_in_dim

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """Solve `A x = b` for matrices with the diagonals `dl[i] = A[i, i-1]`, `d[i] = A[i, i]` and `du[i] = A[i, i+1]`.

    `dl`, `d` and `du` have shape [..., n], where `dl[0]` and `du[-1]` are not read; `b` has shape [..., n, k]. A
    singular matrix gives NaN; with `perturb_singular` a pivot that is too small is made larger, so that the result is
    finite. ShapeError where shapes do not fit, TypeError where dtypes differ.

    >>> tridiagonal_solve(jnp.array([0.0, 1.0]), jnp.ones(2), jnp.zeros(2), jnp.array([[2.0], [3.0]]))
    Array([[2.],
           [1.]], dtype=float32)
    """
    operands = as_matrices("tridiagonal_solve", dl, d, du, b)
    return tridiagonal_solve_p.bind(*operands, perturb_singular=bool(perturb_singular))


class TridiagonalSolve(MatrixOperation):
    name = "tridiagonal_solve"
    kernels: tuple[str] = ("gtsv",)
    choices: Mapping[str, Sequence[Any]] = one_of(perturb_singular=(False,))
    sharding: Sharding = stacked_dimensions(1)

    def shape_rule(
        self, dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
    ) -> ShapedArray:
        check_matrix(self.name, b)
        if not dl.shape == d.shape == du.shape or d.shape != b.shape[:-1]:
            raise ShapeError(
                f"tridiagonal_solve: dl is {shown(dl)}, d is {shown(d)}, du is {shown(du)}, b is {shown(b)}; the "
                "diagonals must have one shape, that of b without its last dimension"
            )
        return ShapedArray(b.shape, b.dtype)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        *diagonals, _ = primals
        *changes, db = tangents
        x = self.bind(*primals, **params)
        right = db
        if not all(map(is_zero, changes)):
            low, middle, high = map(instantiated, changes)
            right = add_tangents(neg(product(low, middle, high, x)), db)
        return x, right if is_zero(right) else self.bind(*diagonals, right, **params)

    def transpose(self, ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> Values:
        assert is_linear(b)
        return [None, None, None, self.bind(shifted(du, 1), d, shifted(dl, -1), ct, **params)]

    def lower(self, ctx: Any, *operands: Any, perturb_singular: bool) -> Any:
        out = ctx.aval_out
        batch = out.ndim - 2
        if is_gpu(ctx) and not perturb_singular:
            return foreign_call(ctx, "cusparse_gtsv2_ffi", operands, [out], batch_dims=batch, aliases={0: 3})[0]
        if ctx.platform == "tpu" and not perturb_singular:
            return thomas(ctx, *operands)
        lapack = kernel(ctx, "gtsv")
        if perturb_singular:
            return foreign_call(ctx, "tridiagonal_solve_perturbed_ffi", operands, [out], batch_dims=batch)[0]
        types = [*ctx.avals_in, ShapedArray(out.shape[:-2], np.dtype(np.int32))]
        aliases = {i: i for i in range(4)}
        *_, x, info = foreign_call(ctx, lapack, operands, types, batch_dims=batch, aliases=aliases)
        return ctx.inline(lambda status, y: succeeded(status, y)[0], info, x, avals=[types[4], types[3]])

    def cost(self, dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, **params: Any) -> Cost:
        return super().cost(dl, d, du, b, **params)._replace(flops=5 * b.size + 3 * d.size)


tridiagonal_solve_p: Final = TridiagonalSolve()


# --- helpers


def product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """The product of a tridiagonal matrix with `x`."""
    below, above = shifted(x, 1, axis=-2), shifted(x, -1, axis=-2)
    lower, middle, upper = (_broadcast_diagonal(diagonal, x) for diagonal in (dl, d, du))
    return add(add(mul(lower, below), mul(middle, x)), mul(upper, above))


def shifted(x: Any, by: int, axis: int = -1) -> Any:
    """Element i of the result is element `i - by` of `x`; 0 where there is none."""
    aval = aval_of(x)
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (by, -by, 0)
    return pad(x, literal(0, aval.dtype), config)


def _broadcast_diagonal(diagonal: Any, like: Any) -> Any:
    shape = aval_of(like).shape
    return broadcast_in_dim(diagonal, shape, range(len(shape) - 1))
