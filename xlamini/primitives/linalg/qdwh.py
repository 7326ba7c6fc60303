"""qdwh: the polar decomposition A = U H by dynamically weighted Halley iteration, made of products, QR and Cholesky.

Y. Nakatsukasa, Z. Bai, F. Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition" (2010).
The weights follow from a lower bound on the smallest singular value. That bound is the precision of the dtype, so
weights and number of steps (4 for float32, 6 for float64) are static, and the program has no loop.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from xlamini.core import ShapedArray, ShapeError, aval_of, canonicalize_dtype, literal
from xlamini.core.dtypes.limits import finfo
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.elementwise.arithmetic import abs, add, div, sub
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.comparison import eq, gt, lt
from xlamini.primitives.elementwise.complex import part_dtype
from xlamini.primitives.elementwise.convert_element_type import convert, convert_element_type_p
from xlamini.primitives.elementwise.power import sqrt
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.linalg.cholesky import cholesky, symmetrized
from xlamini.primitives.linalg.qr import qr
from xlamini.primitives.linalg.stacks import as_matrices, check_matrix, eye, matmul, mH, shown
from xlamini.primitives.linalg.triangular_solve import triangular_solve
from xlamini.primitives.placement.optimization_barrier import optimization_barrier
from xlamini.primitives.reductions.reductions import reduce_max
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import broadcast_in_dim, sum_over
from xlamini.primitives.shape.slice import slice_in_dim

Weights = tuple[float, float, float]

_STEPS = 10
_CHOLESKY_BELOW = 100.0
"""The weight c below which a step by Cholesky's factors is accurate enough; it is cheaper than one by QR."""


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """U with orthonormal columns and Hermitian H with `x = U H`, the number of steps taken, and whether they sufficed.

    `x` has shape [..., m, n], m >= n, and full rank. Steps end when they are precise to `eps`, by default the precision
    of the dtype, or after `max_iterations`, by default 10. `dynamic_shape` gives the shape of the part of `x` that
    counts; what is beyond is taken for zeros. `is_hermitian` changes nothing. ShapeError for m < n.

    >>> qdwh(xlamini.numpy.array([[0.0, 2.0], [3.0, 0.0]]))[1].round().astype(int)
    Array([[3, 0],
           [0, 2]], dtype=int32)
    """
    (x,) = as_matrices("qdwh", x)
    aval = aval_of(x)
    check_matrix("qdwh", aval)
    if aval.shape[-2] < aval.shape[-1]:
        raise ShapeError(f"qdwh: a matrix is needed that is not wider than tall, got {shown(aval)}; adjoin it")
    if dynamic_shape is not None:
        x = where(_inside(aval, dynamic_shape), x, literal(0, aval.dtype))
    needed = list(weights(eps or float(finfo(aval.dtype).eps)))
    steps = needed[: _STEPS if max_iterations is None else max_iterations]
    u = unitary_factor(x, steps)
    count = convert_element_type_p.bind(literal(len(steps)), new_dtype=canonicalize_dtype(int), weak_type=True)
    sufficed = eq(count, literal(len(needed)))
    return u, symmetrized(matmul(mH(u), x)), count, sufficed


def unitary_factor(x: Any, steps: list[Weights]) -> Any:
    """The factor with orthonormal columns, after these steps."""
    aval = aval_of(x)
    if aval.size == 0 or not steps:
        return x
    u = div(x, convert(_scale(x), aval.dtype))
    for a, b, c in steps:
        u = _step_by_qr(u, a, b, c) if c > _CHOLESKY_BELOW else _step_by_cholesky(u, a, b, c)
        (u,) = optimization_barrier([u])  # else XLA sums u again from the parts of all steps, which stay in memory
    # One step of Newton and Schulz takes away what rounding has left.
    return sub(_scaled(1.5, u), _scaled(0.5, matmul(u, matmul(mH(u), u))))


def weights(eps: float) -> Iterator[Weights]:
    """The weights (a, b, c) of all steps that matrices with singular values from `eps` to 1 need."""
    bound, tolerance = eps, 5 * eps
    while 1 - bound > tolerance:
        square = bound * bound
        root = math.sqrt(1 + math.cbrt(4 * (1 / square - 1) / square))
        a = root + math.sqrt(3 - root**2 + 2 * (2 - square) / (square * root))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        yield a, b, c
        bound = min(1.0, bound * (a + b * square) / (1 + c * square))


# --- steps: u becomes u (a + b u^H u) / (1 + c u^H u)


def _step_by_qr(u: Any, a: float, b: float, c: float) -> Any:
    """A step of the iteration by the QR factors of u over the identity."""
    aval = aval_of(u)
    *outer, m, n = aval.shape
    identity = eye(ShapedArray((*outer, n, n), aval.dtype))
    q, _ = qr(concatenate([_scaled(math.sqrt(c), u), identity], aval.ndim - 2), full_matrices=False)
    upper, lower = slice_in_dim(q, 0, m, axis=-2), slice_in_dim(q, m, m + n, axis=-2)
    return add(_scaled(b / c, u), _scaled((a - b / c) / math.sqrt(c), matmul(upper, mH(lower))))


def _step_by_cholesky(u: Any, a: float, b: float, c: float) -> Any:
    gram = matmul(mH(u), u)
    factor = cholesky(add(_scaled(c, gram), eye(aval_of(gram))), symmetrize_input=False)
    solved = triangular_solve(factor, u, lower=True, transpose_a=True, conjugate_a=True)
    solved = triangular_solve(factor, solved, lower=True)
    return add(_scaled(b / c, u), _scaled(a - b / c, solved))


# --- helpers


def _scaled(factor: float, x: Any) -> Any:
    return mul(literal(factor, aval_of(x).dtype), x)


def _scale(x: Any) -> Any:
    """An upper bound of the largest singular value, the geometric mean of two norms; 1 for zeros. Of the shape of x."""
    size, rows = abs(x), aval_of(x).ndim - 2
    norms = [reduce_max(sum_over(size, (d,)), (rows,)) for d in (rows, rows + 1)]
    bound = mul(sqrt(norms[0]), sqrt(norms[1]))
    dtype = part_dtype(aval_of(x).dtype)
    bound = where(gt(bound, literal(0, dtype)), bound, literal(1, dtype))
    return broadcast_in_dim(bound, aval_of(x).shape, range(rows))


def _inside(aval: ShapedArray, shape: tuple[Any, Any]) -> Any:
    index = np.dtype(np.int32)
    rows, columns = (broadcasted_iota(index, aval.shape, aval.ndim - d) for d in (2, 1))
    return bitwise_and(lt(rows, convert(shape[0], index)), lt(columns, convert(shape[1], index)))
