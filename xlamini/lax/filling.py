"""Arrays filled with one value: full, full_like, empty."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapedArray, ShapeError, aval_of, check_user_dtype, has_shape_and_dtype
from xlamini.core.program.avals import as_sizes
from xlamini.primitives import check_operands, checked_sharding, in_dtype
from xlamini.primitives.base.out_sharding import sharding_like
from xlamini.primitives.placement.identity import stage
from xlamini.primitives.shape.shape import broadcast
from xlamini.runtime import Array
from xlamini.transforms.sharding.device_put import device_put
from xlamini.typing import ArrayLike, DTypeLike


def full(
    shape: Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Any = None
) -> Array:
    """An array of `shape` filled with a scalar, in `dtype` or else the scalar's own.

    ShapeError for a value that is no scalar, or a negative size.

    >>> full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    check_operands("full", (fill_value,))
    aval = aval_of(fill_value) if dtype is None else ShapedArray((), check_user_dtype(dtype, "full"))
    return _filled("full", fill_value, aval.update(shape=_as_shape("full", shape)), sharding)


def full_like(
    x: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
    sharding: Any = None,
) -> Array:
    """An array filled with a scalar, of the shape and dtype of `x`, where no others are given.

    `x` is an array or a number, or has a `shape` and a `dtype`. Without `shape` and `sharding` the array is split over
    a mesh as `x` is. ShapeError for a value that is no scalar.

    >>> full_like(xlamini.numpy.arange(2), 1.5)
    Array([1, 1], dtype=int32)
    """
    check_operands("full_like", (fill_value,))
    aval = _type_of(x)
    if dtype is not None:
        aval = ShapedArray(aval.shape, check_user_dtype(dtype, "full_like"))
    if shape is not None:
        aval = aval.update(shape=_as_shape("full_like", shape))
    elif sharding is None:
        sharding = sharding_like(x)
    return _filled("full_like", fill_value, aval, sharding)


def empty(shape: Sequence[int] | int, dtype: DTypeLike, *, out_sharding: Any = None) -> Any:
    """An array of which nobody may expect any values; they are zeros.

    >>> empty((2,), "int32")
    Array([0, 0], dtype=int32)
    """
    there = None if out_sharding is None else checked_sharding("empty", out_sharding)
    return full((shape,) if isinstance(shape, int) else shape, 0, dtype, sharding=there)


def _filled(name: str, value: Any, aval: ShapedArray, sharding: Any) -> Any:
    if aval_of(value).shape:
        found = aval_of(value).str_short(short_dtypes=False)
        raise ShapeError(f"{name}: fill_value must be a scalar, got {found}; broadcast_to repeats an array")
    number = in_dtype(value, aval.dtype, aval.weak_type)
    out = broadcast(number, aval.shape) if aval.shape else stage(number)
    return out if sharding is None else device_put(out, sharding)


def _as_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = as_sizes(shape)
    if any(n < 0 for n in sizes):
        raise ShapeError(f"{name}: a shape holds no negative size, got {sizes}")
    return sizes


def _type_of(x: Any) -> ShapedArray:
    if not hasattr(x, "aval") and has_shape_and_dtype(x):
        return ShapedArray(tuple(x.shape), check_user_dtype(x.dtype, "full_like"))
    check_operands("full_like", (x,))
    return aval_of(x)
