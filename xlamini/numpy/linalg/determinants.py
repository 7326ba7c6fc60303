"""Determinants, also as sign and logarithm, with derivatives also where a matrix is singular."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.core import aval_of
from xlamini.core.sizes.expression import is_less
from xlamini.numpy import reductions
from xlamini.numpy.exponential import log
from xlamini.numpy.linalg.arguments import squares
from xlamini.numpy.linalg.exact_products import product, rounded, scaled, sum_of_products
from xlamini.numpy.linalg.solving import factored, solve_with
from xlamini.numpy.matrices import diagonal, trace
from xlamini.primitives import (
    abs,
    broadcast_in_dim,
    broadcasted_iota,
    convert,
    equal,
    expand_dims,
    full,
    imag,
    real,
    where,
    zeros,
)
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.operators import less, not_equal
from xlamini.primitives.elementwise.complex import complex
from xlamini.primitives.linalg.lu import lu, rows_taken, solve_with_factors
from xlamini.primitives.linalg.qr import qr
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.custom.custom_jvp import custom_jvp
from xlamini.transforms.derivatives.jvp import jvp
from xlamini.typing import ArrayLike

_INDEX = np.dtype(np.int32)


class SlogdetResult(NamedTuple):
    """Sign of a determinant and logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


@composite()
def det(a: ArrayLike) -> Array:
    """The determinants of matrices of shape [..., n, n].

    The derivative is right also for a singular matrix, unless LU decomposition meets more than one pivot that is zero:
    then it is 0. ShapeError for matrices that are not square.

    >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = squares("det", a)
    if not x.shape[-1]:
        return full(_scalars(x), 1)
    return _det_written_out(x) if is_less(x.shape[-1], 4) else _det_by_lu(x)


@composite(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign of the determinants of matrices of shape [..., n, n], and the logarithm of their absolute values.

    Of a singular matrix the sign is 0 and the logarithm -inf; of a complex one the sign is a complex number of length
    1. `method` is "lu", the default, or for real matrices "qr". ShapeError for matrices that are not square.

    >>> slogdet(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0.6931472, dtype=float32))
    """
    x = squares("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method {method!r} is not known; give 'lu' or 'qr'")
    if method != "qr":
        return SlogdetResult(*_slogdet_by_lu(x))
    if is_complex(x):
        raise NotImplementedError("slogdet: method 'qr' takes real matrices only; use 'lu'")
    return SlogdetResult(*_slogdet_by_qr(x))


# --- small matrices, by Leibniz' formula
#
# Its terms may cancel or leave the range. In float64 those of narrower floats do neither; those of float64 take care.


@custom_jvp
def _det_written_out(x: Any) -> Any:
    wide = np.result_type(x.dtype, np.float64)
    if x.shape[-1] < 2 or x.dtype != wide:
        return convert(_leibniz(_entries(x, wide)), x.dtype)
    rows = [[scaled(entry) for entry in row] for row in _entries(x, wide)]
    if len(rows) == 2:
        return rounded(_minor(rows[0], rows[1], 0, 1))
    minors = [_minor(rows[1], rows[2], i, j) for i, j in ((1, 2), (0, 2), (0, 1))]
    return rounded(sum_of_products(list(zip((1, -1, 1), rows[0], minors, strict=True))))


@_det_written_out.defjvp
def _(primals: Any, tangents: Any) -> Any:
    """Minors need no such care, and in the dtype of the matrix the gradient of a stack takes a quarter of the time."""
    change = jvp(lambda x: _leibniz(_entries(x, x.dtype)), primals, tangents)[1]
    return _det_written_out(*primals), change


def _entries(x: Any, dtype: Any) -> list[list[Any]]:
    size = range(x.shape[-1])
    return [[convert(x[..., row, column], dtype) for column in size] for row in size]


def _leibniz(rows: list[list[Any]]) -> Any:
    if len(rows) == 1:
        return rows[0][0]
    if len(rows) == 2:
        (a, b), (c, d) = rows
        return a * d - b * c
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * e * i + b * f * g + c * d * h - c * e * g - a * f * h - b * d * i


def _minor(above: Any, below: Any, i: int, j: int) -> Any:
    return sum_of_products([(1, above[i], below[j]), (-1, above[j], below[i])])


# --- larger ones


@custom_jvp
def _det_by_lu(x: Any) -> Any:
    factors, pivots, _ = lu(x)
    return product(diagonal(factors, 0, -2, -1)) * convert(_parity(pivots), aval_of(x).dtype)


@_det_by_lu.defjvp
def _(primals: Any, tangents: Any) -> Any:
    """`d det = tr(adj(A) dA)`, where adj(A) = ± adj(U) L^-1 P for the LU decomposition.

    With a zero on U's diagonal, adj(U) is the product of the other elements there and of the column and the row of the
    inverse that belong to it, of U with a one in its place.
    """
    (x,), (tangent,) = primals, tangents
    factors, pivots, permutation = lu(x)
    pivot = diagonal(factors, 0, -2, -1)
    lost = equal(pivot, 0)
    regular = factors + convert(_on_diagonal(lost), factors.dtype)
    upper = {"lower": False, "unit_diagonal": False}
    left = solve_with_factors(regular, rows_taken(tangent, permutation), lower=True, unit_diagonal=True)
    inner = solve_with_factors(regular, left, **upper)
    others = product(where(lost, full(aval_of(pivot), 1), pivot))
    others = others * convert(_parity(pivots), others.dtype)
    chosen = expand_dims(convert(lost, factors.dtype), (aval_of(lost).ndim,))
    column = solve_with_factors(regular, chosen, **upper)
    row = reductions.sum(inner * chosen, -2)
    singular = reductions.sum(row * column[..., 0], -1)
    count = reductions.sum(convert(lost, _INDEX), -1)
    change = where(equal(count, 0), trace(inner, 0, -2, -1), where(equal(count, 1), singular, zeros(aval_of(singular))))
    return where(equal(count, 0), others, zeros(aval_of(others))), others * change


@custom_jvp
def _slogdet_by_lu(x: Any) -> tuple[Any, Any]:
    factors, pivots, _ = lu(x)
    values = diagonal(factors, 0, -2, -1)
    return _sign_and_log(values, _parity(pivots))


@_slogdet_by_lu.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (tangent,) = primals, tangents
    sign, logarithm = _slogdet_by_lu(x)
    change = trace(solve_with(x, factored(x), tangent), 0, -2, -1)
    if not is_complex(x):
        return (sign, logarithm), (zeros(aval_of(sign)), change)
    turn = complex(zeros(aval_of(logarithm)), imag(change))
    return (sign, logarithm), (turn * sign, real(change))


def _slogdet_by_qr(x: Any) -> tuple[Any, Any]:
    """The determinant of R times that of Q, which is computed by LU, as some of Q's reflections may be trivial."""
    q, r = qr(x, full_matrices=False)
    sign, logarithm = _sign_and_log(diagonal(r, 0, -2, -1), 1)
    return sign * _slogdet_by_lu(q)[0], logarithm


def _sign_and_log(values: Any, parity: Any) -> tuple[Any, Any]:
    """The sign (a phase, if complex) and logarithm of products of numbers, times 1 or -1."""
    size = abs(values)
    singular = reductions.any(equal(values, 0), -1)
    if is_complex(values):
        sign = reductions.prod(values / convert(size, values.dtype), -1)
    else:
        odd = reductions.sum(convert(less(values, 0), _INDEX), -1) % 2
        sign = convert(1 - 2 * odd, values.dtype)
    sign = sign * convert(parity, values.dtype) if not isinstance(parity, int) else sign
    logarithm = reductions.sum(log(size), -1)
    infinite = full(aval_of(logarithm), -np.inf)
    return where(singular, zeros(aval_of(sign)), sign), where(singular, infinite, logarithm)


def _parity(pivots: Any) -> Any:
    """-1 where there is an odd number of row exchanges, else 1."""
    aval = aval_of(pivots)
    exchanged = not_equal(pivots, broadcasted_iota(_INDEX, aval.shape, aval.ndim - 1))
    return 1 - 2 * (reductions.sum(convert(exchanged, _INDEX), -1) % 2)


def _on_diagonal(values: Any) -> Any:
    """Square matrices with these booleans on the diagonal."""
    aval = aval_of(values)
    shape = (*aval.shape, aval.shape[-1])
    rows, columns = (broadcasted_iota(_INDEX, shape, aval.ndim - d) for d in (1, 0))
    return equal(rows, columns) & broadcast_in_dim(values, shape, range(aval.ndim))


def _scalars(x: Any) -> Any:
    aval = aval_of(x)
    return aval.update(shape=aval.shape[:-2], weak_type=False)
