"""Sharding labels of gather and scatter: the dimensions that share a sharding over a mesh.

Batching dimensions share one, and so do those that windows take whole; indexed dimensions must not be split. Indices
may be split where each device can read its part without the others, not where devices would write to one place.
"""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core import Factors, Shape, ShapedArray
from xlamini.core.sharding.factors import Labels, where_split
from xlamini.primitives.indexing.gather_numbers import GatherDimensionNumbers, ScatterDimensionNumbers, as_gather


def gather_factors(
    x: ShapedArray, indices: ShapedArray, out: ShapedArray, numbers: GatherDimensionNumbers, sizes: Shape
) -> Factors:
    """The factors of a gather of windows of these sizes."""
    operand, places, windows = _labels(x, indices, out, numbers, sizes)
    return Factors([operand, places], [windows])


def scatter_factors(
    x: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers, sizes: Shape
) -> Factors:
    """The factors of a scatter: the updates may be split as the operand is, in whose type the result is."""
    operand, places, windows = _labels(x, indices, updates, as_gather(numbers), sizes)
    known = {*where_split(x), *numbers.operand_batching_dims}
    return Factors([operand, _only(known, places), _only(known, windows)], [operand])


def _labels(
    x: ShapedArray, indices: ShapedArray, windows: ShapedArray, numbers: GatherDimensionNumbers, sizes: Shape
) -> tuple[Labels, Labels, Labels]:
    """Labels of the operand, of the indices, and of the array of windows that are read or written."""
    offsets, collapsed, _, batch, indices_batch = numbers
    inside = [d for d in range(x.ndim) if d not in (*collapsed, *batch)]
    operand = [d if d in batch or (d in inside and sizes[d] == x.shape[d]) else None for d in range(x.ndim)]
    partner = dict(zip(indices_batch, batch, strict=True))
    places = [partner.get(d, ("place", d)) for d in range(indices.ndim - 1)]
    window, place = iter([operand[d] for d in inside]), iter(places)
    found = [next(window) if d in offsets else next(place) for d in range(windows.ndim)]
    return operand, [*places, None], found


def _only(known: set, labels: Sequence) -> Labels:
    return [label if label in known else None for label in labels]
