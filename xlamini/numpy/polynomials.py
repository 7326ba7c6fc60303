"""Polynomials as arrays of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.core.sizes.expression import is_symbolic_shape, max_size
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.arguments import as_count, as_index, as_operand, as_whole
from xlamini.numpy.convolution import convolve
from xlamini.numpy.creation import ones, zeros
from xlamini.numpy.joining import concatenate
from xlamini.numpy.linalg.solving import inv, lstsq
from xlamini.numpy.linear_algebra import dot
from xlamini.numpy.matrices import eye
from xlamini.numpy.repeating import broadcast_to
from xlamini.numpy.searching import concrete_values
from xlamini.numpy.shapes import atleast_1d
from xlamini.numpy.sorting import argsort
from xlamini.primitives import (
    broadcast_in_dim,
    broadcasted,
    broadcasted_iota,
    check_operands,
    convert,
    in_dtype,
    mul,
    promoted_dtypes,
    promoted_inexact_dtypes,
    rev,
    where,
)
from xlamini.primitives.base import operators
from xlamini.primitives.linalg.eig import eig
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.scan.api import scan
from xlamini.typing import ArrayLike


@composite()
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    >>> polyadd(jnp.array([1, 2, 3]), jnp.array([10, 20]))
    Array([ 1, 12, 23], dtype=int32)
    """
    return operators.add(*_of_one_length("polyadd", a1, a2))


@composite()
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    >>> polysub(jnp.array([1, 2, 3]), jnp.array([10, 20]))
    Array([  1,  -8, -17], dtype=int32)
    """
    return operators.subtract(*_of_one_length("polysub", a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials, as floats.

    `trim_leading_zeros` drops them, as NumPy does, but not inside a traced function, where values are unknown.

    >>> polymul(jnp.array([1, 2]), jnp.array([1, -2]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    factors = _coefficients("polymul", a1, a2)
    if trim_leading_zeros:
        factors = [_without_leading_zeros("polymul", a) for a in factors]
    return convolve(*factors, precision="highest")


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient of two polynomials and the remainder, as floats; the remainder is as long as `u`.

    `trim_leading_zeros` drops its leading zeros, as NumPy does, but not inside a traced function.

    >>> polydiv(jnp.array([1, 0, -4]), jnp.array([1, 2]))
    (Array([ 1., -2.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    quotient, rest = _division(*_coefficients("polydiv", u, v))
    return quotient, _without_leading_zeros("polydiv", rest) if trim_leading_zeros else rest


@composite(static=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The derivative of order `m` of a polynomial, as floats.

    >>> polyder(jnp.array([1, 2, 3]))
    Array([2., 2.], dtype=float32)
    """
    order = as_count("polyder", "m", as_index("polyder", "m", m))
    (found,) = _coefficients("polyder", p)
    for _ in range(order):
        found = mul(found[:-1], _powers(max_size(found.shape[0] - 1, 0), found.dtype))
    return found


@composite(static=("m",))
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The antiderivative of order `m` of a polynomial, as floats.

    `k` holds the constants of integration, the first one first; one number applies to all, None means zeros.

    >>> polyint(jnp.array([2, 2]), k=5)
    Array([1., 2., 5.], dtype=float32)
    """
    order = as_count("polyint", "m", as_index("polyint", "m", m))
    given = () if k is None else (atleast_1d(as_operand("polyint", k)),)
    found, *rest = _coefficients("polyint", p, *given)
    constants = rest[0] if rest else zeros(order, found.dtype)
    if constants.shape[0] not in (1, order):
        raise ValueError(
            f"polyint: k has length {constants.shape[0]}; give one constant, or one for each of {order} orders"
        )
    constants = broadcast_to(constants, (order,))
    for i in range(order):
        found = concatenate([found / _powers(found.shape[0], found.dtype), constants[i : i + 1]])
    return found


@composite(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial at each `x`, by Horner's rule; `unroll` coefficients are taken in one step of a loop.

    Further dimensions of `p` are broadcast with `x`: they hold several polynomials.

    >>> polyval(jnp.array([1, 0, 3]), 2)
    Array(7, dtype=int32)
    """
    p, x = check_operands("polyval", (p, x))
    coefficients, at = promoted_dtypes(p, x)
    coefficients = as_operand("polyval", coefficients)
    if not coefficients.ndim:
        raise ValueError("polyval: p must have a dimension of coefficients, got a scalar; use jnp.atleast_1d")
    shape = broadcast_shapes(coefficients.shape[1:], aval_of(at).shape)
    start = zeros(shape, coefficients.dtype)
    at = convert(broadcast_to(at, shape), coefficients.dtype)
    value, _ = scan(
        lambda y, c: (operators.add(*broadcasted("polyval", y * at, c)), None), start, coefficients, unroll=unroll
    )
    return value


@composite()
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with these zeros, as floats; the first is 1.

    Of a square matrix it is the characteristic polynomial, as complex numbers.

    >>> poly(jnp.array([1, 2]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    at: Any = promoted_inexact_dtypes(as_operand("poly", seq_of_zeros))[0]
    if at.ndim > 2 or (at.ndim == 2 and (at.shape[0] != at.shape[1] or not at.size)):
        raise ValueError(f"poly: zeros in one dimension or a square matrix are needed, got shape {at.shape}")
    if at.ndim == 2:
        at = _eigenvalues(at)
    at = atleast_1d(at)
    if not at.shape[0]:
        return ones((), at.dtype)
    result = ones(1, at.dtype)
    for i in range(at.shape[0]):
        result = convolve(result, concatenate([ones(1, at.dtype), -at[i : i + 1]]), precision="highest")
    return result


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, as complex numbers: the eigenvalues of its companion matrix.

    Leading zero coefficients are stripped; inside a traced function their number is unknown, so `strip_zeros` must be
    False there, and NaNs at the end replace the missing roots.

    >>> roots(jnp.array([2.0, -4.0])).real
    Array([2.], dtype=float32)
    """
    (given,) = _coefficients("roots", p)
    if not strip_zeros:
        return _all_roots(given)
    places = np.flatnonzero(concrete_values("roots", given, "give strip_zeros=False"))
    if not len(places):
        return convert(zeros(0, given.dtype), _complex(given.dtype))
    return _companion_roots(given[int(places[0]) :])


@composite(static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of each `x`, from power N - 1 (the length of `x` by default) down to 0, or up.

    >>> vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    values = as_operand("vander", x)
    if values.ndim != 1:
        raise ValueError(f"vander: x must be one-dimensional, got shape {values.shape}")
    count = values.shape[0] if N is None else as_index("vander", "N", N)
    if count < 0:
        raise ValueError(f"vander: N must be 0 or more, got {count}")
    shape = (values.shape[0], count)
    powers = broadcasted_iota(np.dtype("int32"), shape, 1)
    powers = powers if increasing else rev(powers, (1,))
    whole = values.dtype.kind in "iub"
    return operators.power(broadcast_in_dim(values, shape, (0,)), convert(powers, values.dtype) if whole else powers)


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of degree `deg` with the least sum of squared distances from points `(x, y)`.

    `y` may have columns, each fitted separately. `w` weighs the distances. Singular values below `rcond` times the
    largest count as 0. With `full` also the sums of squares, the rank, the singular values and rcond; with `cov` also
    the covariance of the coefficients, not scaled by the distances if it is "unscaled".

    >>> polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    order = as_whole("polyfit", "deg", deg)
    at, heights = promoted_inexact_dtypes(as_operand("polyfit", x), as_operand("polyfit", y))
    _check_points(order, at, heights, w)
    least = at.shape[0] * float(np.finfo(np.zeros((), at.dtype).dtype).eps) if rcond is None else rcond
    return _fit(at, heights, None if w is None else w, order, least, full, cov)


# --- helpers


def _coefficients(name: str, *arrays: Any) -> list[Any]:
    """One-dimensional arrays in one inexact dtype."""
    found = [as_operand(name, a) for a in promoted_inexact_dtypes(*(as_operand(name, a) for a in arrays))]
    _check_rows(name, found)
    return found


def _powers(highest: int, dtype: Any) -> Any:
    """The powers of a polynomial's terms, from the highest down to 1."""
    return convert(operators.subtract(highest, broadcasted_iota(np.dtype(np.int32), (highest,), 0)), dtype)


def _check_rows(name: str, arrays: Any) -> None:
    for a in arrays:
        if a.ndim != 1:
            raise ValueError(f"{name}: coefficients must be one-dimensional, got shape {a.shape}; use jnp.atleast_1d")


def _of_one_length(name: str, a1: Any, a2: Any) -> list[Any]:
    arrays = [as_operand(name, a) for a in promoted_dtypes(as_operand(name, a1), as_operand(name, a2))]
    _check_rows(name, arrays)
    length = max_size(*(a.shape[0] for a in arrays))
    return [concatenate([zeros(length - a.shape[0], a.dtype), a]) for a in arrays]


def _without_leading_zeros(name: str, p: Any) -> Any:
    """Strip leading zeros, but never the last coefficient."""
    places = np.flatnonzero(concrete_values(name, p, "leave trim_leading_zeros False"))
    return p[int(places[0]) :] if len(places) else p[-1:]


@composite()
def _division(u: Any, v: Any) -> Any:
    """Long division: each step takes away a multiple of v, so that the highest coefficient left is 0."""
    n, m = u.shape[0], v.shape[0]
    quotient = []
    for i in range(n - m + 1):
        factor = u[i : i + 1] / v[:1]
        quotient.append(factor)
        u = u.at[i : i + m].add(-factor * v)
    return concatenate(quotient) if quotient else zeros(1, u.dtype), u


def _eigenvalues(matrix: Any) -> Any:
    return eig(matrix, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def _complex(dtype: Any) -> Any:
    return np.result_type(np.zeros((), dtype).dtype, np.complex64)


@composite()
def _companion_roots(p: Any) -> Any:
    degree = p.shape[0] - 1
    if not degree >= 1:
        return convert(zeros(0, p.dtype), _complex(p.dtype))
    below = concatenate([_unit(degree - 1, p.dtype), zeros((degree - 1, 1), p.dtype)], axis=1)
    return _eigenvalues(concatenate([-(p[1:] / p[0])[None, :], below]))


def _unit(n: int, dtype: Any) -> Any:
    return eye(n, dtype=dtype) if is_symbolic_shape((n,)) else as_operand("roots", np.eye(n, dtype=dtype))


@composite()
def _all_roots(p: Any) -> Any:
    """Leading zeros are turned round to the end, where each adds a zero; as many of the zeros become NaN."""
    length = p.shape[0]
    if not length >= 2:
        return _companion_roots(p)
    place = _numbers(length)
    leading = where(operators.not_equal(p, 0), place, length).min()
    found = _companion_roots(p[operators.remainder(place + leading, length)])
    size = where(operators.greater(leading, 0), -operators.absolute(found), in_dtype(0.0, found.real.dtype))
    found = found[argsort(size)]
    missing = operators.greater_equal(place[:-1], length - 1 - leading)
    return where(missing, in_dtype(complex(np.nan, np.nan), found.dtype), found)


def _numbers(n: int) -> Any:
    dtype = np.dtype(np.int32)
    return iota(dtype, n) if is_symbolic_shape((n,)) else as_operand("roots", np.arange(n, dtype=dtype))


def _check_points(order: int, x: Any, y: Any, w: Any) -> None:
    if order < 0:
        raise ValueError(f"polyfit: deg must be 0 or more, got {order}")
    if x.ndim != 1 or not x.size:
        raise TypeError(f"polyfit: x must be one-dimensional and not empty, got shape {x.shape}")
    if y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise TypeError(f"polyfit: y must have one row for each of {x.shape[0]} x, got shape {y.shape}")
    if w is not None and aval_of(w).shape != x.shape:
        raise TypeError(f"polyfit: w must have the shape of x, {x.shape}, got {aval_of(w).shape}")


@composite(static=("order", "full", "cov"))
def _fit(x: Any, y: Any, w: Any, order: int, rcond: Any, full: bool, cov: Any) -> Any:
    left, right = vander(x, order + 1), y
    if w is not None:
        weights = convert(as_operand("polyfit", w), left.dtype)
        left = left * weights[:, None]
        right = right * (weights[:, None] if y.ndim == 2 else weights)
    scale = (left * left).sum(0) ** 0.5
    solution, residuals, rank, singular = lstsq(left / scale, right, rcond)
    solution = (solution.T / scale).T
    if full:
        return solution, residuals, rank, singular, as_operand("polyfit", rcond)
    return (solution, _uncertainty(left, scale, residuals, order, cov, y.ndim)) if cov else solution


def _uncertainty(left: Any, scale: Any, residuals: Any, order: int, cov: Any, ndim: int) -> Any:
    """The covariance of the coefficients."""
    scaled = left / scale
    base = inv(dot(scaled.T, scaled)) / (scale[:, None] * scale[None, :])
    if cov != "unscaled":
        if left.shape[0] <= order + 1:
            raise ValueError(f"polyfit: the covariance needs more than {order + 1} points, got {left.shape[0]}")
        factor = residuals / (left.shape[0] - order - 1)
    else:
        factor = as_operand("polyfit", np.ones(1, left.dtype))
    return base * factor[0] if ndim == 1 else base[:, :, None] * factor
