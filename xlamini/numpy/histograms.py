"""Histograms: how many samples fall into each bin, of one number each or of several."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.creation import full, zeros
from xlamini.numpy.curves import diff
from xlamini.numpy.ranges import linspace
from xlamini.numpy.reductions import max, min
from xlamini.numpy.searching import places
from xlamini.numpy.shapes import ravel
from xlamini.primitives import check_operands, convert, in_dtype, promoted_inexact_dtypes, where
from xlamini.primitives.base import operators
from xlamini.primitives.base.out_sharding import in_sharding
from xlamini.primitives.base.promotion import accumulator
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Array | Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The bounds of `bins` equally wide bins over `range`, or from the smallest element to the largest.

    A range of one point is widened by a half on both sides. `bins` may be the bounds themselves. `weights` have no
    influence. NotImplementedError for NumPy's rules that choose a number of bins, such as "auto".

    >>> histogram_bin_edges(jnp.array([0.0, 1.0, 4.0]), 2)
    Array([0., 2., 4.], dtype=float32)
    """
    return _edges("histogram_bin_edges", a, bins, range)


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """The number of elements in each bin, as floats, and the edges of the bins, as in `histogram_bin_edges`.

    A lower bound belongs to its bin; the highest bound to the last one. With `weights`, of the shape of `a`, elements
    count by their weight. With `density` the result is divided by its sum and by the bins' widths. `out_sharding` says
    how the numbers are split over a mesh.

    >>> histogram(jnp.array([0.0, 1.0, 4.0]), 2)
    (Array([2., 1.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    """
    check_operands("histogram", (a,) if weights is None else (a, weights))
    if weights is None:
        (x,) = promoted_inexact_dtypes(as_operand("histogram", a))
        counted: Any = 1
    else:
        x, counted = promoted_inexact_dtypes(as_operand("histogram", a), as_operand("histogram", weights))
        if aval_of(counted).shape != aval_of(x).shape:
            raise ShapeError(
                f"histogram: weights of shape {aval_of(counted).shape} for `a` of shape {aval_of(x).shape}; "
                "give one for each element"
            )
    edges = _edges("histogram", x, bins, range)
    if out_sharding is not None:
        return in_sharding(out_sharding, _histogram, x, edges, counted, bool(density)), edges
    return _histogram(x, edges, counted, bool(density)), edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | list[ArrayLike] = 10,
    range: Sequence[Array | Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """The number of points `(x, y)` in each bin of a grid, and the edges of the bins in both directions.

    `bins` is a number or bounds, for both directions, or a list of two such; `range` a pair of bounds (or None) for
    each. See `histogramdd`.

    >>> histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), 2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    columns = [as_operand("histogram2d", v) for v in (x, y)]
    if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
        shapes = [c.shape for c in columns]
        raise ShapeError(f"histogram2d: x and y must be one-dimensional and of one length, got shapes {shapes}")
    if not _is_number(bins) and len(bins) not in (1, 2):  # type: ignore[arg-type]
        bins = [bins, bins]  # type: ignore[list-item]
    counts, edges = _histogramdd("histogram2d", columns, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | list[ArrayLike] = 10,
    range: Sequence[Array | Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """The number of rows of `sample`, of shape (count, dimensions), in each bin, and the edges in each dimension.

    `bins` is a number for all dimensions, or a number or bounds for each; `range` a pair of bounds (or None, for the
    smallest and the largest) for each. Counts are integers; floats with `weights`, of shape (count,), or `density`.

    >>> histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), 2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    rows = as_operand("histogramdd", sample)
    if rows.ndim != 2:
        raise ValueError(f"histogramdd: sample must be of shape (count, dimensions), got {rows.shape}")
    columns = [rows[:, i] for i in _count(rows.shape[1])]
    return _histogramdd("histogramdd", columns, bins, range, weights, density)


# --- helpers

_count = range


def _edges(name: str, a: Any, bins: Any, limits: Any) -> Any:
    if isinstance(bins, str):
        raise NotImplementedError(f"{name}: bins={bins!r}; give their number, or their bounds")
    (x,) = promoted_inexact_dtypes(as_operand(name, a))
    if isinstance(bins, list | tuple):
        bins = np.asarray(bins)
    if np.ndim(bins):
        if np.ndim(bins) > 1:
            raise ValueError(f"{name}: bins must be a number or one-dimensional bounds, got shape {np.shape(bins)}")
        return convert(as_operand(name, bins), aval_of(x).dtype)
    if limits is None and not aval_of(x).size:
        raise ValueError(f"{name}: no elements have no smallest and largest; give `range`")
    low, high = (None, None) if limits is None else limits
    return _spaced(x if limits is None else aval_of(x).dtype.type(0), low, high, operator.index(bins))


def _is_number(bins: Any) -> bool:
    return not isinstance(bins, list | tuple) and not np.ndim(bins)


@composite(static=("bins",))
def _spaced(x: Any, low: Any, high: Any, bins: int) -> Any:
    dtype = aval_of(x).dtype
    low, high = (min(x), max(x)) if low is None else (in_dtype(low, dtype), in_dtype(high, dtype))
    point = operators.equal(low, high)
    return linspace(where(point, low - 0.5, low), where(point, high + 0.5, high), bins + 1, dtype=dtype)


@composite(static=("density",))
def _histogram(x: Any, edges: Any, weights: Any, density: bool) -> Any:
    length = aval_of(edges).shape[0]
    values = ravel(x)
    found = places(edges, values, "right")
    found = where(operators.equal(values, edges[-1]), length - 1, found)
    weights = ravel(weights) if aval_of(weights).ndim else weights
    dtype = aval_of(values).dtype
    counts = zeros(length, accumulator(dtype)).at[found].add(convert(weights, accumulator(dtype)), mode="drop")[1:]
    return convert(counts / counts.sum() / diff(edges) if density else counts, dtype)


def _histogramdd(name: str, columns: Sequence[Any], bins: Any, limits: Any, weights: Any, density: Any) -> Any:
    given = (*columns,) if weights is None else (*columns, as_operand(name, weights))
    values = promoted_inexact_dtypes(*given)
    dimensions = len(columns)
    numbers = [bins] * dimensions if _is_number(bins) else list(bins)
    if len(numbers) != dimensions:
        raise ValueError(f"{name}: {len(numbers)} bins for {dimensions} dimensions; give one for each")
    pairs = [None] * dimensions if limits is None else limits
    if len(pairs) != dimensions:
        raise ValueError(f"{name}: range must have a pair or None for each of {dimensions} dimensions, got {limits!r}")
    edges = [_edges(name, *each) for each in zip(values[:dimensions], numbers, pairs, strict=True)]
    counted = None if weights is None else values[-1]
    if counted is not None and aval_of(counted).shape != aval_of(values[0]).shape:
        raise ShapeError(
            f"{name}: weights of shape {aval_of(counted).shape} for {aval_of(values[0]).size} samples; "
            "give one for each"
        )
    return _grid_counts(list(values[:dimensions]), edges, counted, bool(density)), edges


@composite(static=("density",))
def _grid_counts(columns: list[Any], edges: list[Any], weights: Any, density: bool) -> Any:
    """Counts in a grid that has one more bin outside at each end, without those."""
    sizes = [aval_of(e).shape[0] + 1 for e in edges]
    flat: Any = full(aval_of(columns[0]).shape, 0, np.dtype("int32"))
    for values, bounds, size in zip(columns, edges, sizes, strict=True):
        found = places(bounds, values, "right")
        flat = flat * size + where(operators.equal(values, bounds[-1]), found - 1, found)
    counted = 1 if weights is None else weights
    dtype = np.dtype("int32") if weights is None else aval_of(weights).dtype
    wide = accumulator(dtype)
    counts = zeros(math.prod(sizes), wide).at[flat].add(convert(counted, wide), mode="drop").reshape(sizes)
    inner = counts[tuple(slice(1, -1) for _ in sizes)]
    return _as_density(inner, edges) if density else convert(inner, dtype)


def _as_density(counts: Any, edges: list[Any]) -> Any:
    dtype = aval_of(edges[0]).dtype
    result = convert(counts, accumulator(dtype)) / counts.sum()
    for axis, bounds in enumerate(edges):
        shape = [-1 if d == axis else 1 for d in _count(len(edges))]
        result = result / diff(bounds).reshape(shape)
    return convert(result, dtype)
