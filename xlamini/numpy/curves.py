"""Samples of curves: differences between neighbours, areas, lines through points."""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.core.sizes.expression import is_less, is_symbolic_shape
from xlamini.numpy.arguments import as_axis, as_operand, as_operand_beside
from xlamini.numpy.joining import concatenate
from xlamini.numpy.repeating import broadcast_to
from xlamini.numpy.searching import places
from xlamini.numpy.shapes import moveaxis, ravel
from xlamini.numpy.sorting import argsort
from xlamini.primitives import check_operands, promoted_inexact, promoted_inexact_dtypes, slice_in_dim, sum_over, where
from xlamini.primitives.base import operators
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@composite(static=("n", "axis"))
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences between neighbors along an axis, taken `n` times; of bools, whether they differ.

    `prepend` and `append` are put before and after first. ValueError for a scalar, or a negative `n`.

    >>> diff(xlamini.numpy.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    x = as_operand("diff", a)
    if not x.ndim:
        raise ValueError("diff: at least one dimension is needed, got a scalar")
    if operator.index(n) < 0:
        raise ValueError(f"diff: n must be 0 or more, got {n}")
    along = as_axis("diff", axis, x.ndim)
    ends = [_as_end(v, x, along) for v in (prepend, append)]
    if n and any(end is not None for end in ends):
        x = concatenate([part for part in (ends[0], x, ends[1]) if part is not None], axis=along)
    size = x.shape[along]
    for _ in range(n if is_less(n, size) or is_symbolic_shape([size]) else size):
        x = _neighbours(x, along)
    return x


def _as_end(value: Any, x: Any, axis: int) -> Any:
    if value is None or np.ndim(value):
        return value
    return broadcast_to(as_operand_beside("diff", value, x), (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def _neighbours(x: Any, axis: int) -> Any:
    length = x.shape[axis]
    if not length:
        return x
    after, before = slice_in_dim(x, 1, length, axis=axis), slice_in_dim(x, 0, length - 1, axis=axis)
    return operators.not_equal(after, before) if x.dtype == np.bool_ else operators.subtract(after, before)


@composite()
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences between neighbors of the flattened `ary`, between `to_begin` and `to_end`.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    parts = [to_begin, diff(ravel(ary)), to_end]
    return concatenate([ravel(as_operand_beside("ediff1d", x, parts[1])) for x in parts if x is not None])


@composite(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The area under the line through samples `y` along an axis, taken at `x`, or at distances `dx`.

    >>> trapezoid(xlamini.numpy.array([0.0, 1.0, 2.0]))
    Array(2., dtype=float32)
    """
    y = as_operand("trapezoid", y)
    along = as_axis("trapezoid", axis, aval_of(y).ndim)
    heights = moveaxis(y, along, -1)
    if x is None:
        heights, widths = promoted_inexact_dtypes(heights, as_operand("trapezoid", dx))
        if widths.ndim == 0:
            return _even_area(heights, widths)
    else:
        x = as_operand("trapezoid", x)
        x = x if aval_of(x).ndim == 1 else moveaxis(x, along, -1)
        heights, places = promoted_inexact("trapezoid", heights, x)
        widths = diff(places)
    length = heights.shape[-1]
    pairs = slice_in_dim(heights, 1, length, axis=-1) + slice_in_dim(heights, 0, length - 1, axis=-1)
    areas = 0.5 * (widths * pairs)
    return sum_over(areas, (areas.ndim - 1,))


def _even_area(heights: Any, distance: Any) -> Any:
    """The area under samples at equal distances: the distance times their sum, of which each end adds half of itself.

    The sum is one pass over the samples. Subtracting the halves from the sum would make infinite ends NaN.
    """
    if is_symbolic_shape((heights.shape[-1],)):
        return 0.5 * distance * sum_over(heights[..., 1:] + heights[..., :-1], (heights.ndim - 1,))
    if heights.shape[-1] < 2:
        heights = slice_in_dim(heights, 0, 0, axis=-1)  # one sample spans nothing, be it infinite
    place = iota(np.int32, heights.shape[-1])
    at_end = operators.bitwise_or(operators.equal(place, 0), operators.equal(place, heights.shape[-1] - 1))
    weights = where(at_end, 0.5 * distance, distance)[(None,) * (heights.ndim - 1)]
    return sum_over(heights * weights, (heights.ndim - 1,))


_GO_ON = "extrapolate"


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: Any = None,
    right: Any = None,
    period: ArrayLike | None = None,
) -> Array:
    """The height at each `x` of the line through the points `(xp, fp)`, whose `xp` ascend.

    Outside them it is `left` or `right`: a number, "extrapolate" to go on in a straight line, or if it is not given
    the height of the nearest point. With `period` the points go on periodically, and may come in any order.

    >>> interp(1.5, xlamini.numpy.arange(3), xlamini.numpy.array([0, 10, 20]))
    Array(15., dtype=float32)
    """
    go_on = isinstance(left, str), isinstance(right, str)
    for end, is_text in zip((left, right), go_on, strict=True):
        if is_text and end != _GO_ON:
            raise ValueError(f"interp: {end!r} says nothing about the outside; it takes a number or {_GO_ON!r}")
    return _interp(x, xp, fp, None if go_on[0] else left, None if go_on[1] else right, period, go_on)


@composite(static=("go_on",))
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, go_on: tuple[bool, bool]) -> Any:
    x, xp, fp = check_operands("interp", (x, xp, fp))
    if len(aval_of(xp).shape) != 1 or aval_of(xp).shape != aval_of(fp).shape or not aval_of(xp).size:
        raise ValueError(
            f"interp: xp and fp must be one-dimensional and of one length above 0, got shapes {aval_of(xp).shape} and "
            f"{aval_of(fp).shape}"
        )
    at, points = (as_operand("interp", v) for v in promoted_inexact_dtypes(x, xp))
    (heights,) = promoted_inexact_dtypes(as_operand("interp", fp))
    if period is not None:
        at, points, heights = _unrolled(at, points, heights, operators.absolute(period))
    between = _between(at, points, heights)
    if period is not None:
        return between
    return _outside(at, points, heights, between, (left, right), go_on)


def _unrolled(at: Any, points: Any, heights: Any, period: Any) -> tuple[Any, Any, Any]:
    """One period of the points, with a neighbor at both ends."""
    at, points = operators.remainder(at, period), operators.remainder(points, period)
    order = argsort(points)
    points, heights = points[order], heights[order]
    points = concatenate([points[-1:] - period, points, points[:1] + period])
    return at, points, concatenate([heights[-1:], heights, heights[:1]])


def _between(at: Any, points: Any, heights: Any) -> Any:
    """The height on the line of the two points around, or nearest to, each place."""
    last = points.shape[0] - 1
    if not last:
        return heights[0] + at * 0
    low = places(points, at, "right") - 1
    low = where(operators.less(low, 0), 0, where(operators.greater(low, last - 1), last - 1, low))
    x0, x1, y0, y1 = points[low], points[low + 1], heights[low], heights[low + 1]
    # Of halves, whose differences do not overflow.
    width = x1 / 2 - x0 / 2
    steep = operators.equal(x1, x0)
    share = (at / 2 - x0 / 2) / where(steep, 1, width)
    line = 2 * (y0 / 2 + share * (y1 / 2 - y0 / 2))
    line = where(operators.not_equal(line, line), *promoted_inexact("interp", _beside(share, y0, y1), line))
    return where(steep, *promoted_inexact("interp", y0, line))


def _beside(share: Any, y0: Any, y1: Any) -> Any:
    """The limit of the line where infinities have no difference: at an end, between equal ones, or else their sum.

    A share that is NaN is of a place infinitely far from the first point.
    """
    at_start = operators.equal(share, 0)
    inner = operators.bitwise_and(operators.less(share, 1), operators.not_equal(y0, y1))
    return where(at_start, y0, where(inner, y0 + y1, y1))


def _outside(at: Any, points: Any, heights: Any, between: Any, ends: Any, go_on: tuple[bool, bool]) -> Any:
    beyond = (operators.less(at, points[0]), operators.greater(at, points[-1]))
    for outside, end, nearest, further in zip(beyond, ends, (heights[0], heights[-1]), go_on, strict=True):
        if not further:
            value = nearest if end is None else end
            between = where(outside, *promoted_inexact("interp", value, between))
    return between
