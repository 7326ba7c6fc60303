"""Trends: means and lines taken out of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import aval_of, literal
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.numpy.joining import concatenate
from xlamini.numpy.statistics import mean
from xlamini.primitives import expand_dims, moveaxis, promoted_inexact, slice_in_dim, sum_over
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """The data along `axis` without its mean (`type="constant"`) or the line through it ("linear").

    At the indices `bp` a new line begins. Integers give floats. ValueError for another type, or a `bp` outside.

    >>> detrend(jnp.array([1.0, 2.0, 6.0]), type="constant")
    Array([-2., -1.,  3.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data must be None, because arrays are immutable")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant', got {type!r}")
    x = as_operand("detrend", data)
    along = as_axis("detrend", axis, aval_of(x).ndim)
    size = aval_of(x).shape[along]
    starts = sorted({0, *map(int, np.ravel(bp))})
    if type == "linear" and (starts[0] < 0 or not starts[-1] <= size):
        raise ValueError(f"detrend: bp must lie between 0 and the {size} elements along axis {axis}, got {bp}")
    return without_trend(x, along, type, tuple(starts))


@composite(static=("axis", "type", "starts"))
def without_trend(x: Any, axis: int, type: str, starts: tuple[int, ...]) -> Any:
    """`detrend` of arguments that fit, with a new line at each of `starts`."""
    (x,) = promoted_inexact("detrend", x)
    if type == "constant":
        return x - mean(x, axis, keepdims=True)
    moved = moveaxis(x, axis, aval_of(x).ndim - 1)
    ends = [*starts[1:], aval_of(moved).shape[-1]]
    pieces = [slice_in_dim(moved, a, b, axis=-1) for a, b in zip(starts, ends, strict=True) if b > a]
    return moveaxis(concatenate([_without_line(p) for p in pieces], -1), aval_of(x).ndim - 1, axis)


def _without_line(x: Any) -> Any:
    """A signal minus its least-squares line; the slope is that of the deviations from the means."""
    last, size = aval_of(x).ndim - 1, aval_of(x).shape[-1]
    x = x - mean(x, -1, keepdims=True)
    if size == 1:
        return x
    dtype = np.zeros((), aval_of(x).dtype).real.dtype
    times = (iota(dtype, size) - literal((size - 1) / 2, dtype)) / literal(size, dtype)
    slope = sum_over(x * times, (last,)) / sum_over(times * times, (0,))
    return x - expand_dims(slope, (last,)) * times
