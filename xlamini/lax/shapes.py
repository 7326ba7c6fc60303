"""Shape and dtype arithmetic: broadcasting, merging dimensions, dtypes of values."""
from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of, canonicalize_dtype, check_user_dtype, literal
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.core.sizes.shapes import broadcast_shapes as _common_shape
from xlamini.primitives import broadcast_in_dim, is_operand, reshape
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.runtime import Array, device_put_value
from xlamini.typing import ArrayLike


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to, by NumPy's rules; ShapeError if there is none.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return _common_shape(*map(tuple, shapes))
    except ValueError:
        found = ", ".join(str(tuple(shape)) for shape in shapes)
        raise ShapeError(
            f"broadcast_shapes: Incompatible shapes for broadcasting: {found}; sizes must be equal or 1, counted from "
            "the last axis"
        ) from None


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """The array with dimensions of size 1 in front, so that it has `rank`; itself if it has as many already.

    >>> broadcast_to_rank(xlamini.numpy.ones(3), 2).shape
    (1, 3)
    """
    shape = aval_of(x).shape
    missing = max(rank - len(shape), 0)
    return broadcast_in_dim(x, (1,) * missing + shape, range(missing, missing + len(shape)))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """The array `arr` broadcast to the shape of `like_arr`, by NumPy's rules; ShapeError where it does not fit.

    >>> broadcast_like(xlamini.numpy.arange(2), xlamini.numpy.ones((2, 2)))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    own, shape = aval_of(arr).shape, aval_of(like_arr).shape
    if len(own) > len(shape) or broadcast_shapes(own, shape) != shape:
        raise ShapeError(f"broadcast_like: an array of shape {own} does not broadcast to {shape}")
    return broadcast_in_dim(arr, shape, range(len(shape) - len(own), len(shape)))


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The array with the dimensions from `start_dimension` up to `stop_dimension` (not included) as one.

    They are counted as in a slice of the shape. ShapeError if the first comes after the second.

    >>> collapse(xlamini.numpy.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    shape = aval_of(operand).shape
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(len(shape))
    if start > stop:
        raise ShapeError(f"collapse: dimensions {start} to {stop} of an array of shape {shape} are in no order")
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def shape_as_value(shape: Sequence[int]) -> Any:
    """A shape as an array of integers.

    >>> shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    sizes, dtype = tuple(shape), canonicalize_dtype(int)
    if is_symbolic_shape(sizes):
        return concatenate([reshape(literal(n, dtype), (1,)) for n in sizes], 0)
    return device_put_value(np.array(sizes, dtype))


def dtype(x: Any) -> np.dtype:
    """The dtype of an array, a number, a dtype name or a type; TypeError if there is none.

    >>> dtype(1.5)
    dtype('float32')
    """
    if is_operand(x):
        return aval_of(x).dtype
    if x is None:
        raise ValueError("dtype: an array, a number or a dtype is needed, got None")
    return check_user_dtype(x, "dtype")
