"""Rows of scipy's smaller modules: ndimage, interpolate, integrate, cluster."""
from __future__ import annotations

from typing import Any

import numpy as np
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.ndimage

from tests.rows.row import Arg, Row
from xlamini.scipy import cluster, integrate, interpolate, ndimage

WIDE = ("float32", "float64")
NARROW = {"float32": 1e-5, "float64": 1e-12}
GRID = (np.array([0.0, 1.0, 2.5], np.float32), np.array([-1.0, 0.0, 0.5, 2.0], np.float32))
PLACES = [Arg((3, 4)), Arg((5,), (0.1, 0.9)), Arg((5,), (1.1, 1.9))]


def mapped(order: int, mode: str, inside: bool) -> Row:
    far = [Arg((3, 4)), Arg((5,), (3.1, 3.4)), Arg((5,), (-1.4, -1.1))]
    return Row(
        f"scipy.ndimage.map_coordinates: {order} {mode} {inside}",
        lambda x, i, j: ndimage.map_coordinates(x, [i, j], order, mode),
        lambda x, i, j: scipy.ndimage.map_coordinates(x, [i, j], order=order, mode=_SCIPYS.get(mode, mode)),
        [PLACES if inside else far],
        WIDE,
        order=1,
        tolerance=NARROW,
    )


# SciPy's wrap blends the first and the last element, grid-wrap does not.
_SCIPYS = {"wrap": "grid-wrap"}


def interpolated(x: Any, places: Any, method: str) -> Any:
    return interpolate.RegularGridInterpolator(GRID, x, method, fill_value=None)(places)


def by_scipy(x: Any, places: Any, method: str) -> Any:
    found = scipy.interpolate.RegularGridInterpolator(GRID, x.astype(float), method, False, None)(places)
    return found.astype(x.dtype)


ROWS = [
    *(mapped(1, mode, True) for mode in ("constant", "nearest", "wrap", "mirror", "reflect")),
    *(mapped(order, mode, False) for order in (0, 1) for mode in ("nearest", "wrap", "mirror", "reflect")),
    *(
        Row(
            f"scipy.interpolate.RegularGridInterpolator: {method}",
            lambda x, p, method=method: interpolated(x, p, method),
            lambda x, p, method=method: by_scipy(x, p, method),
            [[Arg((3, 4)), Arg((2, 2), (1.1, 1.9))], [Arg((3, 4)), Arg((3, 2), (2.6, 3.4))]],
            WIDE,
            order=1,
            tolerance=NARROW,
        )
        for method in ("linear", "nearest")
    ),
    Row("scipy.integrate.trapezoid", integrate.trapezoid, scipy.integrate.trapezoid, [[Arg((2, 3))]], WIDE, order=1),
    Row(
        "scipy.cluster.vq.vq",
        lambda x, codes: cluster.vq.vq(x, codes)[1],
        lambda x, codes: scipy.cluster.vq.vq(x, codes)[1].astype(x.dtype),
        [[Arg((4, 3)), Arg((2, 3))]],
        WIDE,
        order=1,
        tolerance=NARROW,
    ),
]
