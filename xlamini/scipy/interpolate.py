"""Functions given on a grid: RegularGridInterpolator."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError, Tracer, api_boundary_methods
from xlamini.numpy.arguments import as_operand
from xlamini.primitives.placement.optimization_barrier import optimization_barrier
from xlamini.runtime import Array
from xlamini.transforms.cond.platform_dependent import platform_dependent
from xlamini.typing import ArrayLike

__all__ = ["RegularGridInterpolator"]


def __dir__() -> list[str]:
    return sorted(__all__)


class RegularGridInterpolator:
    """A function of several variables, given by its `values` at the points of a grid, which need not be even.

    Args:
      points: the coordinates along each axis of the grid, one-dimensional and ascending, or all descending.
      values: shape (n0, n1, ..., *others) for points of these lengths; a result has the others too.
      method: "linear" between the 2**d points around a place, or "nearest".
      bounds_error: must be False, because values of arrays cannot be checked while they are traced.
      fill_value: what the function is beyond the grid; None lets it go on as it does at the edge.

    Called with places of shape (..., d), or with a tuple of d arrays of one shape, it gives values of shape
    (..., *others). NaN where a coordinate is NaN. ShapeError where points and values do not fit, ValueError for points
    that are not in order, which goes unseen where they are traced.

    >>> f = RegularGridInterpolator((jnp.array([0.0, 1.0]), jnp.array([0.0, 2.0])), jnp.array([[0.0, 2.0], [1.0, 3.0]]))
    >>> f(jnp.array([[0.5, 1.0]]))
    Array([1.5], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ):
        if bounds_error:
            raise NotImplementedError("RegularGridInterpolator: bounds_error must be False; use fill_value")
        self.method: str = _checked(method)
        self.fill_value = fill_value
        self.values: Any = as_operand("RegularGridInterpolator", values)
        grid = [as_operand("RegularGridInterpolator", p) for p in points]
        shapes = [p.shape for p in grid]
        if len(grid) > self.values.ndim or any(s != (n,) for s, n in zip(shapes, self.values.shape, strict=False)):
            raise ShapeError(
                f"RegularGridInterpolator: values of shape {self.values.shape} need points of one dimension and these "
                f"lengths along each axis, got shapes {shapes}"
            )
        for p in points:
            _check_order(p)
        if not jnp.issubdtype(self.values.dtype, np.inexact):
            self.values = self.values.astype(float)
        self.grid: tuple[Any, ...] = tuple(_ascending(p, p) for p in grid)
        for axis, p in enumerate(grid):
            self.values = _ascending(p, self.values, axis)

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Array:
        """The function at the places `xi`, by `method` if one is given."""
        weigh = _METHODS[self.method if method is None else _checked(method)]
        places = self._places(xi)
        outer, flat = places.shape[:-1], places.reshape(-1, len(self.grid))
        found = _weighted(self.values, [_cell(g, x, weigh) for g, x in zip(self.grid, flat.T, strict=True)])
        others = found.shape[1:]
        if self.fill_value is not None:
            outside = [(x < g[0]) | (x > g[-1]) for g, x in zip(self.grid, flat.T, strict=True)]
            found = jnp.where(_column(jnp.stack(outside).any(0), others), self.fill_value, found)
        found = jnp.where(_column(jnp.isnan(flat).any(1), others), np.nan, found)
        return found.reshape(*outer, *others)

    def _places(self, xi: Any) -> Any:
        """The places as one array with the coordinates along its last axis."""
        if isinstance(xi, tuple):
            xi = jnp.stack(jnp.broadcast_arrays(*xi), -1)
        places = as_operand("RegularGridInterpolator", xi)
        if places.ndim == 1 and len(self.grid) == 1:
            places = places[:, None]
        if not places.ndim or places.shape[-1] != len(self.grid):
            raise ShapeError(
                f"RegularGridInterpolator: places of shape {places.shape} need {len(self.grid)} coordinates along "
                "their last axis, one for each axis of the grid"
            )
        return places


api_boundary_methods(RegularGridInterpolator)


# --- helpers

Cell = tuple[tuple[Any, Any], tuple[Any, Any]]


def _checked(method: str) -> str:
    if method not in _METHODS:
        raise ValueError(f"RegularGridInterpolator: method must be 'linear' or 'nearest', got {method!r}")
    return method


def _check_order(points: ArrayLike) -> None:
    """ValueError for known points that neither ascend nor descend, or are equal; traced ones cannot be inspected."""
    if isinstance(points, Tracer):
        return
    steps = np.diff(np.asarray(points).astype(np.float64))
    if not ((steps > 0).all() or (steps < 0).all()):
        raise ValueError(
            "RegularGridInterpolator: the points along an axis must ascend or descend, with no two equal; sort them "
            "and the values, for instance with jnp.argsort"
        )


def _ascending(points: Any, x: Any, axis: int = 0) -> Any:
    """An array turned round along an axis whose points descend."""
    return jnp.where(points[0] > points[-1], jnp.flip(x, axis), x)


def _column(x: Any, others: tuple[int, ...]) -> Any:
    return x.reshape(-1, *(1 for _ in others))


# How much the point above a place counts, by where the place is between the point below, 0, and it, 1.
_METHODS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda share: share,
    "nearest": lambda share: (share > 0.5).astype(share.dtype),
}


def _cell(grid: Any, x: Any, weigh: Callable[[Any], Any]) -> Cell:
    """The points below and above each coordinate, and how much they count."""
    last = grid.shape[0] - 1
    below = (jnp.searchsorted(grid, x) - 1).clip(0, max(last - 1, 0))
    above = jnp.minimum(below + 1, last)
    found = below, above, grid[below], grid[above]
    below, above, low, high = platform_dependent(*found, cpu=_computed_once, default=lambda *xs: xs)
    width = high - low
    share = weigh(jnp.where(width > 0, (x - low) / jnp.where(width > 0, width, 1), 0))
    return (below, 1 - share), (above, share)


def _computed_once(*xs: Any) -> Any:
    """These values, behind a barrier: XLA's CPU compiler would search again for each of the uses of a place."""
    return optimization_barrier(xs)


def _weighted(values: Any, cells: Sequence[Cell]) -> Any:
    """The sum over the corners of the cells: for each place, an element of `values` times its weights."""
    total: Any = 0
    for corner in itertools.product(*cells):
        found = values[tuple(index for index, _ in corner)]
        for _, weight in corner:
            found = found * _column(weight, found.shape[1:])
        total = total + found
    return total
