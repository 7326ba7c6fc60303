"""scipy's smaller modules: ndimage, interpolate, cluster."""

from __future__ import annotations

from tests.support.error_rows import ones, row
from xlamini import numpy as jnp
from xlamini.errors import ShapeError
from xlamini.scipy import cluster, interpolate, ndimage

X, GRID = ones(3, 4), (jnp.arange(3.0), jnp.arange(4.0))
grid = interpolate.RegularGridInterpolator

ROWS = [
    row("coordinates", lambda: ndimage.map_coordinates(X, [ones(2)], 1), ValueError, "1 coordinates for an array"),
    row("order", lambda: ndimage.map_coordinates(X, GRID, 3), NotImplementedError, "order must be 0 or 1, got 3"),
    row("mode", lambda: ndimage.map_coordinates(X, GRID, 1, "far"), NotImplementedError, "'reflect'", "got 'far'"),
    row("no array", lambda: ndimage.map_coordinates("x", GRID, 1), TypeError, "argument 'input' of map_coordinates"),
    row("points", lambda: grid((ones(3), ones(3)), X), ShapeError, "values of shape (3, 4)", "got shapes [(3,), (3,)]"),
    row("axes", lambda: grid((ones(3),) * 3, X), ShapeError, "values of shape (3, 4)"),
    row("method", lambda: grid(GRID, X, "cubic"), ValueError, "must be 'linear' or 'nearest', got 'cubic'"),
    row("method of a call", lambda: grid(GRID, X)(ones(1, 2), "x"), ValueError, "got 'x'"),
    row("bounds", lambda: grid(GRID, X, bounds_error=True), NotImplementedError, "bounds_error must be False"),
    row("places", lambda: grid(GRID, X)(ones(1, 3)), ShapeError, "places of shape (1, 3) need 2 coordinates"),
    row("features", lambda: cluster.vq.vq(ones(3, 2), ones(3, 4)), ShapeError, "vq: obs", "(3, 2) and (3, 4)"),
    row("ranks", lambda: cluster.vq.vq(ones(3, 2), ones(3)), ShapeError, "(3, 2) and (3,)"),
]
