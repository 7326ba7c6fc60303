"""All windows of an array as strided slices: one for each offset in the window."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import expand_dims
from xlamini.primitives.shape.slice import slice
from xlamini.primitives.windows.geometry import Pads, dilated, window_counts


def window_views(
    x: Any,
    filler: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Any:
    """An array of shape (offsets in the window, windows…): element [i, w] is that at offset i of window w."""
    counts = window_counts(
        aval_of(x).shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    if 0 in counts:
        return zeros(aval_of(x).update(shape=(math.prod(window_dimensions), *counts)))
    views = each_view(x, filler, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return concatenate([expand_dims(view, (0,)) for view in views], 0)


def each_view(
    x: Any,
    filler: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> list[Any]:
    """For each offset in the window, the last dimension's fastest, an array of the elements there, of all windows."""
    counts = window_counts(
        aval_of(x).shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    config = [(low, high, base - 1) for (low, high), base in zip(padding, base_dilation, strict=True)]
    around = pad(x, filler, config) if any(map(any, config)) else x
    reach = dilated(counts, window_strides)
    return [
        slice(around, at, [a + r for a, r in zip(at, reach, strict=True)], window_strides)
        for at in offsets(window_dimensions, window_dilation)
    ]


def offsets(window_dimensions: Sequence[int], window_dilation: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The places in a window, in the order of its elements."""
    steps = zip(window_dimensions, window_dilation, strict=True)
    return itertools.product(*(range(0, n * hole, hole) for n, hole in steps))
