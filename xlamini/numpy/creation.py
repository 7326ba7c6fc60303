"""Arrays filled with one value.

Outside a trace a small one is made on the host and put onto the device, which is quicker than running a program.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import canonicalize_dtype, check_user_dtype
from xlamini.core.tracer import aval_of, state
from xlamini.numpy.arguments import as_operand, as_shape
from xlamini.primitives.promotion import check_operands, in_dtype
from xlamini.primitives.random_keys import wrap_p
from xlamini.primitives.shape import broadcast_in_dim, broadcast_in_dim_p, refuse_sharding
from xlamini.runtime.array import Array
from xlamini.runtime.keys import KeyType
from xlamini.runtime.put import device_put_value
from xlamini.transforms.composite import composite
from xlamini.transforms.placing import device_put
from xlamini.typing import ArrayLike, DTypeLike, ShapeLike

SMALL = 4096
"""Up to this many elements an array is made on the host."""


def zeros(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: None = None
) -> Array:
    """An array of zeros; of floats, if no dtype is given. TypeError for a shape with negative or broken sizes.

    >>> zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    refuse_sharding("zeros", out_sharding)
    return _filled("zeros", shape, 0, dtype, device)


def ones(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: None = None
) -> Array:
    """An array of ones; of floats, if no dtype is given."""
    refuse_sharding("ones", out_sharding)
    return _filled("ones", shape, 1, dtype, device)


def empty(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: None = None
) -> Array:
    """An array of any values: of zeros."""
    refuse_sharding("empty", out_sharding)
    return _filled("empty", shape, 0, dtype, device)


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: None = None,
) -> Array:
    """An array filled with `fill_value`, which may be an array that broadcasts to `shape`; in its dtype, if none is
    given.

    >>> full(2, 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    refuse_sharding("full", out_sharding)
    check_operands("full", (fill_value,))
    sizes = as_shape("full", shape)
    aval = aval_of(fill_value)
    if dtype is not None:
        aval = ShapedArray(aval.shape, check_user_dtype(dtype, "full"))
    if aval.shape:
        return _placed(_spread(in_dtype(fill_value, aval.dtype, aval.weak_type), sizes), device)
    return _constant(fill_value, ShapedArray(sizes, aval.dtype, aval.weak_type), device)


def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: None = None,
) -> Array:
    """An array of zeros of the shape and dtype of `a`, where no others are given."""
    refuse_sharding("zeros_like", out_sharding)
    return _filled_like("zeros_like", a, 0, dtype, shape, device)


def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: None = None,
) -> Array:
    """An array of ones of the shape and dtype of `a`, where no others are given."""
    refuse_sharding("ones_like", out_sharding)
    return _filled_like("ones_like", a, 1, dtype, shape, device)


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *, device: Any = None
) -> Array:
    """An array of any values, of the shape and dtype of `prototype`, where no others are given: of zeros."""
    return _filled_like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: None = None,
) -> Array:
    """An array filled with `fill_value`, of the shape and dtype of `a`, where no others are given.

    >>> full_like(xlamini.numpy.arange(2), 1.5)
    Array([1, 1], dtype=int32)
    """
    refuse_sharding("full_like", out_sharding)
    check_operands("full_like", (fill_value,))
    aval = _like("full_like", a, dtype, shape)
    if aval_of(fill_value).shape:
        return _placed(_spread(in_dtype(fill_value, aval.dtype), aval.shape), device)
    return _constant(fill_value, aval, device)


def _filled(name: str, shape: Any, value: int, dtype: Any, device: Any) -> Any:
    sizes = as_shape(name, shape)
    wanted = canonicalize_dtype(float) if dtype is None else check_user_dtype(dtype, name)
    return _constant(value, ShapedArray(sizes, wanted), device)


def _filled_like(name: str, a: Any, value: int, dtype: Any, shape: Any, device: Any) -> Any:
    return _constant(value, _like(name, a, dtype, shape), device)


def _like(name: str, a: Any, dtype: Any, shape: Any) -> ShapedArray:
    """The type of an array like `a`, which may be anything with a shape and a dtype."""
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        check_operands(name, (a,))
    weak = dtype is None and bool(getattr(a, "weak_type", type(a) in (int, float, complex)))
    sizes = aval_of(a).shape if shape is None else as_shape(name, shape)
    return ShapedArray(sizes, aval_of(a).dtype if dtype is None else check_user_dtype(dtype, name), weak)


def _constant(value: Any, aval: ShapedArray, device: Any) -> Any:
    """An array of this type that holds one number everywhere: in each word of random keys."""
    if isinstance(aval.dtype, KeyType) and aval_of(value).dtype != aval.dtype:
        return _placed(_keys(value, aval), device)
    if state.builder is None and aval.size <= SMALL and not hasattr(value, "aval"):
        return device_put_value(_on_host(value, aval), device, aval=aval)
    if state.builder is None:
        return _placed(_run_filled(value, aval), device)
    return _placed(_staged(value, aval), device)


def _on_host(value: Any, aval: ShapedArray) -> np.ndarray:
    return np.full(aval.shape, np.asarray(value).astype(aval.dtype), aval.dtype)


def _staged(value: Any, aval: ShapedArray) -> Any:
    scalar = in_dtype(value, aval.dtype, aval.weak_type)
    return broadcast_in_dim_p.bind(scalar, shape=aval.shape, broadcast_dimensions=())


@composite(static=("aval",))
def _run_filled(value: Any, aval: ShapedArray) -> Any:
    return _staged(value, aval)


@composite(static=("aval",))
def _keys(value: Any, aval: ShapedArray) -> Any:
    words = ShapedArray((*aval.shape, *aval.dtype.physical_shape), aval.dtype.physical_dtype)
    return wrap_p.bind(_staged(value, words), impl=aval.dtype.generator)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    """An array broadcast to `shape`; ValueError where it does not fit."""
    own = aval_of(x).shape
    try:
        fits = np.broadcast_shapes(own, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"full: fill_value of shape {own} does not broadcast to shape {shape}")
    return broadcast_in_dim(as_operand("full", x), shape, range(len(shape) - len(own), len(shape)))


def _placed(x: Any, device: Any) -> Any:
    return x if device is None else device_put(x, device)


