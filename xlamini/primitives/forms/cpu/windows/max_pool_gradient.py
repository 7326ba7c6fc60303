"""The gradient of max pooling: each element takes the cotangents of the windows that it wins.

XLA's CPU backend visits each window, and adds its cotangent where its first extremum is. Here the place of the extremum
in each window is computed elementwise over strided slices. An element at distance r from the start of window p lies in
the windows p, p - 1, … as well, at r + stride, r + 2 stride, …; where that is the place of the extremum, it takes the
cotangent. So all windows of one such offset are one comparison of whole arrays, and nothing is scattered.

Milliseconds, XLA's select_and_scatter / this: 3×3 with stride 2 of 8×64×112×112 139 / 10; 2×2 of 2×64×128×128 14 / 1.0.
ONNX has no such operator.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

from xlamini.core import Shape, ShapedArray, aval_of, literal
from xlamini.primitives.base.elementwise import add_any
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.windows.sum_dtype import PLAIN_FLOATS
from xlamini.primitives.forms.parts import noinline
from xlamini.primitives.shape.iota import iota_p
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import broadcast_in_dim, reshape, transpose
from xlamini.primitives.shape.slice import slice
from xlamini.primitives.windows.geometry import Pads
from xlamini.primitives.windows.places import PLACE, places_of

_MOST_PLACES, _MOST_OVERLAPS = 64, 16


def fits(
    source: ShapedArray, x: ShapedArray, *, window_dimensions: Shape, window_strides: Shape, **_: Any
) -> bool:
    """Windows of few elements, of which few overlap."""
    overlaps = [-(-n // stride) for n, stride in zip(window_dimensions, window_strides, strict=True)]
    few = math.prod(window_dimensions) <= _MOST_PLACES and math.prod(overlaps) <= _MOST_OVERLAPS
    return few and source.dtype.name in PLAIN_FLOATS and x.dtype == source.dtype


def max_pool_gradient(
    source: Any, x: Any, *, select_prim: Any, window_dimensions: Shape, window_strides: Shape, padding: Pads
) -> Any:
    """`source`, a cotangent for each window, added to the element that `select_prim` picks from the window."""
    grid = _grid(window_dimensions, window_strides)
    numbers, windows = _numbers(window_dimensions, grid), (window_dimensions, window_strides, padding)
    places = noinline(lambda x: places_of(x, select_prim, numbers, *windows), x)
    by_cell = noinline(lambda source, places: _by_cell(source, places, grid), source, places)
    cells, zero = _cells(aval_of(source).shape, grid), literal(0, aval_of(source).dtype)
    whole = [n * stride for n, stride in zip(cells, grid.strides, strict=True)]
    rest = zip(padding, aval_of(x).shape, whole, strict=True)
    last = aval_of(by_cell).ndim - 1
    side_by_side = reshape(transpose(by_cell, (*range(1, last + 1), 0)), whole)
    return pad(side_by_side, zero, [(-low, n + low - m, 0) for (low, _), n, m in rest])


# --- helpers


class _CellGrid(NamedTuple):
    """The padded operand as cells of `strides` elements, in each of which a window starts.

    Along a dimension an element lies in `overlaps` windows at most. A place in a window is one number, in which a step
    along a dimension counts `steps`.
    """

    strides: Shape
    overlaps: Shape
    steps: Shape


def _grid(window: Shape, strides: Shape) -> _CellGrid:
    overlaps = tuple(-(-n // stride) for n, stride in zip(window, strides, strict=True))
    widths = [n * stride for n, stride in zip(overlaps, strides, strict=True)]
    return _CellGrid(strides, overlaps, tuple(math.prod(widths[d + 1 :]) for d in range(len(widths))))


def _numbers(window: Shape, grid: _CellGrid) -> list[int]:
    """The number of each place in a window."""
    offsets = itertools.product(*map(range, window))
    return [sum(n * step for n, step in zip(offset, grid.steps, strict=True)) for offset in offsets]


def _cells(windows: Shape, grid: _CellGrid) -> Shape:
    return tuple(n + overlap - 1 for n, overlap in zip(windows, grid.overlaps, strict=True))


def _by_cell(source: Any, places: Any, grid: _CellGrid) -> Any:
    """The sums for the elements of each cell.

    Of shape (stride in the last dimension, cells and stride of each other dimension…, cells of the last one): in this
    order all is vectorised along the last dimension.
    """
    around = [(n - 1, n - 1, 0) for n in grid.overlaps]
    places = pad(places, literal(-1, PLACE), around)
    cotangents = pad(source, literal(0, aval_of(source).dtype), around)
    cells = _cells(aval_of(source).shape, grid)
    backs = itertools.product(*map(range, grid.overlaps))
    return functools.reduce(add_any, (_taken(cotangents, places, grid, cells, back) for back in backs))


def _taken(cotangents: Any, places: Any, grid: _CellGrid, cells: Shape, back: Shape) -> Any:
    """For each element of each cell, the cotangent of the window that starts `back` cells before, if it wins that."""
    *pairs, stride = [n for pair in zip(cells, grid.strides, strict=True) for n in pair]
    shape = (stride, *pairs)
    start = [overlap - 1 - n for overlap, n in zip(grid.overlaps, back, strict=True)]
    limit = [low + n for low, n in zip(start, cells, strict=True)]

    def of_windows(values: Any) -> Any:
        return broadcast_in_dim(slice(values, start, limit), shape, range(1, len(shape), 2))

    here = literal(sum(n * s * step for n, s, step in zip(back, grid.strides, grid.steps, strict=True)), PLACE)
    here = broadcast_in_dim(here, shape, ())
    for d, (stride, step) in enumerate(zip(grid.strides, grid.steps, strict=True)):
        if stride > 1:
            dim = 2 * d + 2 if d < len(cells) - 1 else 0
            here = here + iota_p.bind(dtype=PLACE, shape=shape, dimension=dim) * step
    zero = literal(0, aval_of(cotangents).dtype)
    return where(eq(of_windows(places), here), of_windows(cotangents), zero)
