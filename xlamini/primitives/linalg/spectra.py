"""Helpers for decompositions by eigenvalues and singular values: diagonals, gaps between values, kernels."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core import Avals, aval_of, literal
from xlamini.core.dtypes.limits import finfo
from xlamini.lowering.ffi_calls import foreign_call
from xlamini.primitives.elementwise.arithmetic import abs, div, mul, sub
from xlamini.primitives.elementwise.comparison import eq, le
from xlamini.primitives.elementwise.complex import part_dtype
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.linalg.stacks import status_aval, succeeded
from xlamini.primitives.reductions.reductions import reduce_max
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import broadcast_in_dim, reshape
from xlamini.primitives.shape.slice import slice

_INDEX = np.dtype(np.int32)


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices: every (n + 1)-th of their elements."""
    *outer, n, _ = aval_of(x).shape
    flat = reshape(x, (*outer, n * n))
    return slice(flat, [0] * (len(outer) + 1), [*outer, n * n], [1] * len(outer) + [n + 1])


def as_rows(v: Any, shape: Sequence[int]) -> Any:
    """Vectors as every row of matrices of this shape: element [i, j] is `v[j]`."""
    return broadcast_in_dim(v, shape, (*range(len(shape) - 2), len(shape) - 1))


def as_columns(v: Any, shape: Sequence[int]) -> Any:
    """Vectors as every column of matrices of this shape: element [i, j] is `v[i]`."""
    return broadcast_in_dim(v, shape, range(len(shape) - 1))


def on_diagonal(shape: Sequence[int]) -> Any:
    """A mask of the diagonal of square matrices of this shape."""
    rows, columns = (broadcasted_iota(_INDEX, shape, len(shape) - d) for d in (2, 1))
    return eq(rows, columns)


def inverse_gaps(w: Any) -> Any:
    """`1 / (w[j] - w[i])`, and 0 where these are equal."""
    shape = (*aval_of(w).shape, aval_of(w).shape[-1])
    return inverse(sub(as_rows(w, shape), as_columns(w, shape)), w)


def inverse(x: Any, w: Any) -> Any:
    """`1 / x` of sums and differences of values of `w`, and 0 where they are 0 up to rounding errors.

    The vectors of equal values are not determined, only the space that they span: a function of that space multiplies
    these derivatives by 0.
    """
    dtype, real = aval_of(x).dtype, part_dtype(aval_of(w).dtype)
    last = aval_of(w).ndim - 1
    bound = mul(reduce_max(abs(w), (last,)), literal(8 * float(finfo(real).eps), real))
    bound = broadcast_in_dim(bound, aval_of(x).shape, range(last))
    lost = le(abs(x), bound)
    one = literal(1, dtype)
    return where(lost, literal(0, dtype), div(one, where(lost, one, x)))


def decomposed(
    ctx: Any,
    target: str,
    x: Any,
    results: Avals,
    attributes: Mapping[str, Any],
    overwrites: bool = True,
    row_major: bool = False,
    kept: int | None = None,
) -> list[Any]:
    """The outputs of a kernel on the equation's operand `x`, without its status; NaN where that reports a failure.

    `kept` is the number of outputs wanted, None for all. `overwrites` means that the kernel works in place of its
    operand, which then holds the first output.
    """
    status = status_aval(ctx.avals_in[0])
    aliases = {0: 0} if overwrites else None
    *outs, info = foreign_call(
        ctx, target, [x], [*results, status], attributes=attributes, aliases=aliases, row_major=row_major
    )
    return ctx.inline(succeeded, info, *outs[:kept], avals=[status, *results[:kept]])
