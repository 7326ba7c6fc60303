"""Means, variances and medians over axes of an array."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of, check_user_dtype, issubdtype, literal, result_type
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.arguments import as_axes, as_operand, as_reduced, refuse_out
from xlamini.numpy.reductions import SUM, Axis, as_mask, reduce, sum as array_sum
from xlamini.primitives import (
    abs,
    add,
    broadcast_in_dim,
    broadcasted_freely,
    convert,
    eq,
    expand_dims,
    full,
    gt,
    imag,
    in_dtype,
    mul,
    real,
    reshape,
    sqrt,
    sub,
    transpose,
    where as select,
)
from xlamini.primitives.base.promotion import accumulator, float_of
from xlamini.primitives.collectives.reductions import psum
from xlamini.primitives.elementwise.arithmetic import div
from xlamini.primitives.linalg.euclidean_norm import euclidean_norm
from xlamini.primitives.shape.shape import sum_over
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike


@composite(static=("axis", "dtype", "keepdims"))
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The arithmetic mean over `axis` (one, several, or None for all), of the elements where `where` holds.

    Integers give float32, halves are averaged in float32. NaN where there is no element; ValueError for an axis that
    the array does not have.

    >>> mean(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    Array([1.5, 3.5], dtype=float32)
    """
    refuse_out("mean", out)
    a = as_operand("mean", a)
    dtype = float_dtype("mean", a, dtype)
    x = convert(a, accumulator(dtype))
    return convert(_mean("mean", x, axis, keepdims, where), dtype)


@composite(static=("axis", "dtype", "keepdims", "ddof", "correction"))
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The variance over `axis`: the squared distances from the mean (or from `mean`, of the shape that keepdims gives).

    Their sum is divided by the number of elements minus `ddof` (or `correction`, its name in the array API); NaN
    where that is not positive. Dtypes are as in `mean`; the variance of complex numbers is real.

    >>> var(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array(1.25, dtype=float32)
    """
    options = axis, dtype, out, ddof, keepdims, where, mean, correction
    return _dispersion("var", _sum_of_squares, div, a, *options)


@composite(static=("axis", "dtype", "keepdims", "ddof", "correction"))
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The standard deviation over `axis`: the root of `var`, with the same arguments.

    >>> std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    return _dispersion("std", euclidean_norm, _over_root, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@composite(static=("axis", "keepdims", "returned"))
def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """The mean over `axis` in which each element counts by its weight; with `returned`, also the sums of the weights.

    `weights` has the array's shape, or one dimension for the one `axis`. ShapeError where it has another shape.

    >>> average(jnp.array([1.0, 2.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.25, dtype=float32)
    """
    a = as_operand("average", a)
    dtype = float_dtype("average", a, None)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        count = as_reduced("average", axis, aval_of(a).ndim).count(aval_of(a).shape)
        return (result, full(aval_of(result), count)) if returned else result
    given = as_operand("average", weights)
    dtype = result_type(dtype, aval_of(given).dtype)
    wide = accumulator(dtype)
    x = convert(a, wide)
    counts = _weights_like(x, in_dtype(given, wide), axis)
    total = array_sum(counts, axis, keepdims=keepdims)
    result = convert(div(array_sum(mul(x, counts), axis, keepdims=keepdims), total), dtype)
    return (result, convert(total, dtype)) if returned else result


# --- helpers, also of the functions that pass over NaNs


def float_dtype(name: str, a: Any, dtype: Any) -> Any:
    """The dtype of a mean: the one asked for, or the elements', float32 for integers (float64 for those of 64 bits)."""
    if dtype is not None:
        return check_user_dtype(dtype, name)
    given = aval_of(a).dtype
    return given if issubdtype(given, np.inexact) else float_of(given)


def flat_rows(name: str, a: Any, axis: Axis) -> tuple[Any, tuple[int, ...], Any]:
    """The array as floats with `axis` as one last axis; the axes; and the type of a result without them."""
    a = as_operand(name, a)
    aval = aval_of(a)
    axes = as_axes(name, axis, aval.ndim)
    kept = [d for d in range(aval.ndim) if d not in axes]
    rows = aval.update(shape=tuple(aval.shape[d] for d in kept))
    size = math.prod(aval.shape[d] for d in axes)
    if not size:
        raise ValueError(f"{name}: axis {axes} of shape {aval.shape} holds no element, so it has no {name}")
    moved = transpose(convert(a, float_dtype(name, a, None)), (*kept, *axes))
    return reshape(moved, (*rows.shape, size)), axes, rows


def between(low: Any, high: Any, share: Any) -> Any:
    """`low + share * (high - low)`, not below `low` nor above `high`, and monotone in the share.

    The difference of numbers of two signs may overflow, so these are summed. With a share of 0 it is `low` also where
    `high` is infinite; between a number and an infinity it is that.
    """
    infinite = eq(abs(low), np.inf) | eq(abs(high), np.inf)
    exact = (eq(share, 0) | eq(low, high)) & eq(share, share)
    limit = select(exact, low, low + high + 0 * share)
    zero = literal(0, aval_of(low).dtype)
    low, high = select(infinite, zero, low), select(infinite, zero, high)
    across = gt(zero, low) & gt(high, zero)
    one_sided = low + share * select(across, zero, high - low)
    value = select(across, (1 - share) * low + share * high, select(gt(one_sided, high), high, one_sided))
    return select(infinite, limit, value)


def _mean(name: str, x: Any, axis: Axis, keepdims: bool, where: Any) -> Any:
    aval = aval_of(x)
    total = reduce(name, SUM, x, axis, keepdims, None, where)
    if where is None:
        return div(total, literal(as_reduced(name, axis, aval.ndim).count(aval.shape), aval.dtype))
    return div(total, _counted(name, x, axis, keepdims, where, aval.dtype))


def _counted(name: str, x: Any, axis: Axis, keepdims: bool, where: Any, dtype: Any) -> Any:
    """The number of elements that `where` selects, over `axis`."""
    shape = broadcast_shapes(aval_of(x).shape, aval_of(where).shape)
    mask, _ = broadcasted_freely(name, as_mask(name, where), full(aval_of(x).update(shape=shape), 0))
    ones = mask if aval_of(mask).shape == shape else broadcast_in_dim(mask, shape, ())
    return reduce(name, SUM, convert(ones, dtype), axis, keepdims)


def _dispersion(
    name: str,
    total_of: Callable[[Any, tuple[int, ...]], Any],
    shared: Callable[[Any, Any], Any],
    a: Any,
    axis: Axis,
    dtype: Any,
    out: None,
    ddof: int,
    keepdims: bool,
    where: Any,
    centre: Any,
    correction: int | float | None,
) -> Any:
    """`total_of` the distances from the mean and axes, `shared` among the elements but for `ddof` of them."""
    refuse_out(name, out)
    if correction is not None and ddof:
        raise ValueError(f"{name}: `ddof` and `correction` are two names of one thing; give one of them")
    for option, value in (("ddof", ddof), ("correction", correction)):
        if value is not None and not isinstance(value, numbers.Real):
            raise TypeError(f"{name}: {option} must be a number, got {value!r} of type {type(value).__name__}")
    a = as_operand(name, a)
    wide = accumulator(float_dtype(name, a, dtype))
    x = convert(a, wide)
    centre = _mean(name, x, axis, True, where) if centre is None else in_dtype(as_operand(name, centre), wide)
    distances = sub(*broadcasted_freely(name, x, centre))
    distances = distances if where is None else _masked(name, where, distances)
    axes = as_reduced(name, axis, aval_of(distances).ndim)
    total = total_of(distances, axes.dims)
    if axes.names:
        total = _of_parts(total, axes.names, total_of)
    total = expand_dims(total, axes.dims) if keepdims else total
    freedom = _freedom(name, distances, axis, keepdims, where, ddof if correction is None else correction)
    result = float_dtype(name, a, dtype)
    return convert(shared(total, freedom), _part(result) if dtype is None else result)


def _masked(name: str, where: Any, x: Any) -> Any:
    """0 for elements that do not count, before they are squared: the derivative of a square of NaN is NaN."""
    mask, x = broadcasted_freely(name, as_mask(name, where), x)
    return select(mask, x, literal(0, aval_of(x).dtype))


def _freedom(name: str, x: Any, axis: Axis, keepdims: bool, where: Any, ddof: int | float) -> Any:
    """The number of elements minus `ddof`; NaN where that is not positive."""
    aval = aval_of(x)
    dtype = _part(aval.dtype)
    nan = literal(np.nan, dtype)
    if where is None:
        count = as_reduced(name, axis, aval.ndim).count(aval.shape)
        if not is_symbolic_shape((count,)):
            return literal(count - ddof if count > ddof else np.nan, dtype)
        counted = literal(count, dtype)
    else:
        counted = _counted(name, x, axis, keepdims, where, dtype)
    freedom = sub(counted, literal(ddof, dtype))
    return select(gt(freedom, literal(0, dtype)), freedom, nan)


def _over_root(length: Any, freedom: Any) -> Any:
    """A length over a root: XLA would multiply by the inverse of a constant one, which is rounded once more."""
    return div(length, select(eq(length, length), sqrt(freedom), length))


def _of_parts(total: Any, names: Any, total_of: Any) -> Any:
    """The total of parts that lie along named axes: a sum, or a length."""
    return psum(total, names) if total_of is _sum_of_squares else sqrt(psum(mul(total, total), names))


def _sum_of_squares(x: Any, axes: tuple[int, ...]) -> Any:
    return sum_over(_square_size(x), axes)


def _square_size(x: Any) -> Any:
    if not issubdtype(aval_of(x).dtype, np.complexfloating):
        return mul(x, x)
    return add(mul(real(x), real(x)), mul(imag(x), imag(x)))


def _part(dtype: Any) -> Any:
    return np.zeros((), dtype).real.dtype if issubdtype(dtype, np.complexfloating) else dtype


def _weights_like(x: Any, weights: Any, axis: Axis) -> Any:
    """The weights in the shape of the array."""
    shape, own = aval_of(x).shape, aval_of(weights).shape
    if own in ((), shape):
        return weights if own else broadcast_in_dim(weights, shape, ())
    axes = as_axes("average", axis, len(shape))
    if axis is None or len(axes) != len(own) or own != tuple(shape[d] for d in axes):
        raise ShapeError(
            f"average: weights of shape {own} fit neither the array's shape {shape} nor axis {axis}; "
            "give them the array's shape, or one dimension and `axis`"
        )
    return broadcast_in_dim(weights, shape, axes)
