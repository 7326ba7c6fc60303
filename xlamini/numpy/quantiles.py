"""Quantiles: the values below which a given share of the elements lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of, issubdtype, literal
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.indexing.take import take, take_along_axis
from xlamini.numpy.reductions import Axis
from xlamini.numpy.shapes import moveaxis
from xlamini.numpy.statistics import between, flat_rows
from xlamini.primitives import (
    broadcast_in_dim,
    broadcast_to,
    clamp,
    convert,
    expand_dims,
    floor,
    full,
    in_dtype,
    in_sharding,
    promoted_inexact,
    reshape,
    transpose,
    where as select,
)
from xlamini.primitives.base import operators
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.elementwise.rounding import RoundingMethod, ceil, round
from xlamini.primitives.reductions.cumulative import cumsum
from xlamini.primitives.reductions.sort import sort_p
from xlamini.primitives.shape.reorder import one_of_each_row
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_STATIC = ("axis", "overwrite_input", "method", "keepdims")
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@composite(static=_STATIC)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value that the share `q` of the elements over `axis` lies below; NaN if one of them is NaN.

    `q` is a number from 0 to 1 or a row of them, which becomes the first axis of the result. Between two elements
    `method` decides: "linear" (on the line between them), "lower", "higher", "midpoint" or "nearest" (halfway the one
    with an even index); "inverted_cdf" takes the first element that the share is reached with, and alone knows
    `weights`, of the shape of `a` or with one dimension for one axis. Integers give floats; ValueError for complex
    numbers and where there is no element.

    >>> quantile(jnp.arange(5), jnp.array([0.25, 0.6]))
    Array([1. , 2.4], dtype=float32)
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


@composite(static=_STATIC)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Like `quantile`, of the elements that are not NaN; NaN where all are.

    >>> nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
    Array(2., dtype=float32)
    """
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, True)


@composite(static=(*_STATIC, "out_sharding"))
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The value that `q` percent of the elements over `axis` lie below: `quantile` with `q / 100`.

    >>> percentile(jnp.arange(5), 50)
    Array(2., dtype=float32)
    """
    if out_sharding is not None:
        options = axis, out, overwrite_input, method, keepdims
        return in_sharding(out_sharding, percentile, a, q, *options, weights=weights)
    share = _share("percentile", q)
    return _quantile("percentile", a, share, axis, out, overwrite_input, method, keepdims, weights, False)


@composite(static=_STATIC)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Like `percentile`, of the elements that are not NaN; NaN where all are.

    >>> nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
    Array(2., dtype=float32)
    """
    share = _share("nanpercentile", q)
    return _quantile("nanpercentile", a, share, axis, out, overwrite_input, method, keepdims, weights, True)


# --- helpers


def _share(name: str, q: Any) -> Any:
    return operators.true_divide(as_operand(name, q), 100)


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Axis,
    out: None,
    overwrite: bool,
    method: str,
    keepdims: bool,
    weights: Any,
    skip: bool,
) -> Any:
    """A quantile of rows that are sorted with NaNs last; those are counted out if `skip`, else make the result NaN."""
    _check(name, a, out, overwrite, method, weights)
    (share,) = promoted_inexact(name, q)
    if aval_of(share).ndim > 1:
        raise ValueError(f"{name}: q must be a number or one-dimensional, got shape {aval_of(share).shape}")
    x, axes, rows = flat_rows(name, a, axis)
    last, count = rows.ndim, aval_of(x).shape[-1]
    operands = (x,) if weights is None else (x, _weights_like(name, x, a, axes, weights))
    x, *sorted_weights = sort_p.bind(*operands, dimension=last, is_stable=True, num_keys=1)
    points = reshape(share, (aval_of(share).size,))
    bad = operators.not_equal(x, x)
    if sorted_weights:
        result = _weighted(x, sorted_weights[0], points, bad, skip)
    elif skip and issubdtype(aval_of(as_operand(name, a)).dtype, np.inexact):
        numbers = count - convert(bad, aval_of(points).dtype).sum(-1, keepdims=True)
        result = _between(x, points, numbers, method)
    else:
        result = _between(x, points, count, method)
    if not skip:
        result = select(broadcast_in_dim(bad[..., -1], aval_of(result).shape, range(last)), _nan(x), result)
    result = moveaxis(result, -1, 0)
    result = expand_dims(result, [1 + d for d in axes]) if keepdims else result
    return result if aval_of(share).ndim else result[0]


def _check(name: str, a: Any, out: None, overwrite: bool, method: str, weights: Any) -> None:
    if out is not None or overwrite:
        raise ValueError(f"{name}: `out` must be None and `overwrite_input` False, because arrays are immutable")
    if method not in _METHODS:
        raise ValueError(f"{name}: method={method!r}; it takes one of {', '.join(map(repr, _METHODS))}")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{name}: method={method!r} knows no weights; use method='inverted_cdf'")
    if issubdtype(aval_of(as_operand(name, a)).dtype, np.complexfloating):
        raise ValueError(f"{name}: complex numbers have no order; take the quantiles of their parts or sizes")


def _nan(x: Any) -> Any:
    return literal(np.nan, aval_of(x).dtype)


def _between(x: Any, points: Any, count: Any, method: str) -> Any:
    """The quantiles of rows whose first `count` elements are numbers: a static count, or one for each row."""
    points = convert(points, accumulator(aval_of(points).dtype))
    one = points * (count - 1)
    if method == "inverted_cdf":
        one = ceil(points * count) - 1
    if method == "nearest":
        one = round(one, RoundingMethod.TO_NEAREST_EVEN)
    low, high = floor(one), ceil(one)
    below, above = (_element(x, i, count) for i in (low, high))
    share = convert(one - low, aval_of(x).dtype)
    share = share if aval_of(share).ndim > 1 else broadcast_to(share, aval_of(below).shape)
    if method == "linear":
        return between(below, above, share)
    if method == "midpoint":
        return between(below, above, full(aval_of(below), 0.5))
    return above if method == "higher" else below


def _element(x: Any, index: Any, count: Any) -> Any:
    """The elements of each row at an index given as a float, or the nearest that is a number."""
    last = operators.subtract(count, 1)
    if not aval_of(last).ndim:
        highest = in_dtype(last if type(count) is SymbolicSize else float(last), aval_of(index).dtype)
        return take(x, convert(clamp(0.0, index, highest), np.int32), axis=-1)
    bounded = operators.greater(index, last)
    inside = select(bounded, broadcast_to(last, aval_of(index).shape), index)
    places = convert(select(operators.less(inside, 0), in_dtype(0, inside.dtype), inside), np.int32)
    if places.shape[-1] == 1:
        return one_of_each_row(x, places[..., 0])[..., None]
    return take_along_axis(x, places, -1)


def _weights_like(name: str, x: Any, a: Any, axes: tuple[int, ...], weights: Any) -> Any:
    """The weights laid out as the rows are."""
    given = as_operand(name, weights)
    shape = aval_of(as_operand(name, a)).shape
    own = aval_of(given).shape
    if own != shape and own == tuple(shape[d] for d in axes):
        given = broadcast_in_dim(given, shape, axes)
    elif own != shape:
        try:
            given = broadcast_in_dim(given, shape, range(len(shape) - len(own), len(shape)))
        except (TypeError, ValueError):
            raise ShapeError(
                f"{name}: weights of shape {own} for an array of shape {shape}; give them that shape, or one dimension "
                "and `axis`"
            ) from None
    kept = [d for d in range(len(shape)) if d not in axes]
    return reshape(convert(transpose(given, (*kept, *axes)), aval_of(x).dtype), aval_of(x).shape)


def _weighted(x: Any, weights: Any, points: Any, bad: Any, skip: bool) -> Any:
    """The first element of each sorted row up to which the weights' sum reaches the share; NaN for bad weights."""
    zero = in_dtype(0, aval_of(x).dtype)
    wrong = operators.bitwise_or(operators.less(weights, 0), operators.not_equal(weights, weights))
    counted = select(operators.bitwise_or(wrong, bad), zero, weights)
    sums = cumsum(counted, axis=aval_of(x).ndim - 1)
    goal = convert(points, aval_of(x).dtype) * sums[..., -1:]
    before = operators.less(expand_dims(sums, (aval_of(sums).ndim - 1,)), expand_dims(goal, (aval_of(goal).ndim,)))
    index = convert(before, np.int32).sum(-1)
    result = take_along_axis(x, select(operators.greater(index, x.shape[-1] - 1), x.shape[-1] - 1, index), -1)
    if skip:
        wrong = operators.bitwise_and(wrong, operators.bitwise_not(bad))
    return select(
        broadcast_in_dim(wrong.any(-1), aval_of(result).shape, range(aval_of(result).ndim - 1)), _nan(x), result
    )
