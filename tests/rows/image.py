"""Rows of images resized: beside NumPy's interpolation where it does the same, else beside slopes and loops alone."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.rows.row import BOOLS, FLOATS, INTS, Arg, Row
from xlamini import image

WIDE = ("float32", "float64")


def repeated(x: Any) -> Any:
    return np.repeat(np.repeat(x, 2, 0), 3, 1)


def interpolated(x: Any) -> Any:
    """A row of 4 samples, at 10 places between their middles."""
    return np.interp((np.arange(10) + 0.5) * 0.4 - 0.5, np.arange(4), x).astype(x.dtype)


def averaged(x: Any) -> Any:
    return x.reshape(2, 2, 2, 3).mean((1, 3))


def moved(x: Any, scale: Any, translation: Any) -> Any:
    return image.scale_and_translate(x, (4, 3), (0,), scale, translation, "cubic")


ROWS = [
    Row(
        "image.resize: nearest",
        lambda x: image.resize(x, (4, 9), "nearest"),
        repeated,
        [[Arg((2, 3))]],
        FLOATS + INTS + BOOLS,
        exact=True,
        linear=True,
    ),
    Row("image.resize: linear", lambda x: image.resize(x, (10,), "linear"), interpolated, [[Arg((4,))]], FLOATS),
    Row("image.resize: area", lambda x: image.resize(x, (2, 2), "area"), averaged, [[Arg((4, 6))]], WIDE, order=1),
    *(
        Row(f"image.resize: {m}", lambda x, m=m: image.resize(x, (2, 5), m), None, [[Arg((3, 4))]], WIDE, order=1)
        for m in ("cubic", "cubic-pytorch", "lanczos3", "lanczos5")
    ),
    Row(
        "image.scale_and_translate",
        moved,
        None,
        [[Arg((3, 3)), Arg((1,), (1.1, 1.2)), Arg((1,), (0.1, 0.2))]],
        WIDE,
        order=1,
    ),
]
