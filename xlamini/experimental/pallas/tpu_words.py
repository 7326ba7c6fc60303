"""Functions for kernels of a TPU, whose meaning every platform has."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core.errors import ShapeError
from xlamini.lax import bitcast_convert_type
from xlamini.runtime import Array


def roll(x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> Array:
    """`numpy.roll` along one axis; with `stride`, row `i` along `stride_axis` moves by `i * stride` more.

    Raises ValueError for one of `stride` and `stride_axis` alone.

    >>> roll(jnp.arange(4), 1, 0)
    Array([3, 0, 1, 2], dtype=int32)
    """
    if (stride is None) != (stride_axis is None):
        raise ValueError("roll: stride and stride_axis belong together; give both, or neither")
    if stride is None or stride_axis is None:
        return jnp.roll(x, shift, axis)
    rows = jnp.moveaxis(x, stride_axis, 0)
    along = axis % x.ndim + (axis % x.ndim < stride_axis % x.ndim)
    moved = [jnp.roll(row, shift + i * stride, along - 1) for i, row in enumerate(rows)]
    return jnp.stack(moved, stride_axis)


def bitcast(x: Any, ty: Any) -> Array:
    """The bits of `x` as another dtype; rows become more or fewer if its width is another one.

    A row of 32-bit numbers is two rows of 16-bit ones, the low halves first. Raises ShapeError if rows are missing, or
    there are none.

    >>> bitcast(jnp.ones((1, 2)), "int16")
    Array([[    0,     0],
           [16256, 16256]], dtype=int16)
    """
    old, new = x.dtype.itemsize, np.dtype(ty).itemsize
    if old == new:
        return bitcast_convert_type(x, ty)
    if x.ndim < 2 or x.shape[-2] * old % new:
        raise ShapeError(f"bitcast: the rows of {x.shape} from {x.dtype} do not fill rows of {np.dtype(ty)}")
    *lead, rows, columns = x.shape
    if old > new:
        parts = jnp.moveaxis(bitcast_convert_type(x, ty), -1, -2)
        return parts.reshape(*lead, rows * old // new, columns)
    parts = x.reshape(*lead, rows * old // new, new // old, columns)
    return bitcast_convert_type(jnp.moveaxis(parts, -2, -1), ty)
