"""Arrays filled with one value.

Outside a trace a small one is made on the host and put onto the device, which is quicker than running a program.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import (
    Holder,
    PartitionSpec,
    ShapedArray,
    aval_of,
    canonicalize_dtype,
    check_user_dtype,
    has_shape_and_dtype,
)
from xlamini.core.dtypes import check_fits, float0
from xlamini.core.sizes.expression import is_less
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.core.tracing.state import state
from xlamini.numpy.arguments import as_operand, as_shape
from xlamini.numpy.out_placement import as_place, placed
from xlamini.primitives import (
    broadcast_in_dim,
    check_operands,
    in_dtype,
    number_on_host,
    warn_of_imaginary_part,
    wrap_p,
)
from xlamini.primitives.base.out_sharding import sharding_like
from xlamini.primitives.shape.shape import broadcast_in_dim_p
from xlamini.runtime import Array, KeyType, NamedSharding, device_put_value
from xlamini.staging import composite
from xlamini.transforms.sharding.device_put import device_put
from xlamini.typing import ArrayLike, DTypeLike, ShapeLike

SMALL = 4096
"""Up to this many elements an array is made on the host."""


def zeros(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of zeros; of floats, if no dtype is given. TypeError for a shape with negative or broken sizes.

    It lies on `device`, or is split over a mesh as `out_sharding` says, a PartitionSpec or NamedSharding.

    >>> zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    return _filled("zeros", shape, 0, dtype, as_place("zeros", device, out_sharding))


def ones(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of ones; of floats, if no dtype is given.

    >>> jnp.ones((1, 3))
    Array([[1., 1., 1.]], dtype=float32)
    """
    return _filled("ones", shape, 1, dtype, as_place("ones", device, out_sharding))


def empty(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of any values: of zeros.

    >>> jnp.empty((2, 3)).shape
    (2, 3)
    """
    return _filled("empty", shape, 0, dtype, as_place("empty", device, out_sharding))


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with `fill_value`, which may be an array that broadcasts to `shape`; in its dtype, if none is
    given. `device` and `out_sharding` as of `zeros`.

    >>> full(2, 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    place = as_place("full", device, out_sharding)
    (fill_value,) = check_operands("full", (fill_value,))
    sizes = as_shape("full", shape)
    aval = aval_of(fill_value)
    if dtype is not None:
        aval = ShapedArray(aval.shape, check_user_dtype(dtype, "full"))
    elif type(fill_value) is int:
        check_fits(fill_value, aval.dtype)
    if aval.shape:
        return placed(_broadcast(in_dtype(fill_value, aval.dtype, aval.weak_type), sizes), place)
    return _constant(fill_value, ShapedArray(sizes, aval.dtype, aval.weak_type), place)


def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of zeros of the shape and dtype of `a`, where no others are given; without `shape`, split as `a` is.

    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    return _filled_like("zeros_like", a, 0, dtype, shape, as_place("zeros_like", device, out_sharding))


def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of ones of the shape and dtype of `a`, where no others are given.

    >>> jnp.ones_like(jnp.arange(3))
    Array([1, 1, 1], dtype=int32)
    """
    return _filled_like("ones_like", a, 1, dtype, shape, as_place("ones_like", device, out_sharding))


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *, device: Any = None
) -> Array:
    """An array of any values, of the shape and dtype of `prototype`, where no others are given: of zeros.

    >>> jnp.empty_like(jnp.ones((2, 3))).shape
    (2, 3)
    """
    return _filled_like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with `fill_value`, of the shape and dtype of `a`, where no others are given.

    >>> full_like(xlamini.numpy.arange(2), 1.5)
    Array([1, 1], dtype=int32)
    """
    place = as_place("full_like", device, out_sharding)
    (fill_value,) = check_operands("full_like", (fill_value,))
    aval = _like("full_like", a, dtype, shape)
    place = _place_like(a, shape, place)
    if aval_of(fill_value).shape:
        return placed(_broadcast(in_dtype(fill_value, aval.dtype), aval.shape), place)
    return _constant(fill_value, aval, place)


def _filled(name: str, shape: Any, value: int, dtype: Any, place: Any) -> Any:
    sizes = as_shape(name, shape)
    wanted = canonicalize_dtype(float) if dtype is None else check_user_dtype(dtype, name)
    return _constant(value, ShapedArray(sizes, wanted), place)


def _filled_like(name: str, a: Any, value: int, dtype: Any, shape: Any, place: Any) -> Any:
    return _constant(value, _like(name, a, dtype, shape), _place_like(a, shape, place))


def _place_like(a: Any, shape: Any, place: Any) -> Any:
    """The placement of an array like `a`: the requested one, or that of `a` if the shapes are equal."""
    return sharding_like(a) if place is None and shape is None and not isinstance(a, Holder) else place


def _like(name: str, a: Any, dtype: Any, shape: Any) -> ShapedArray:
    """The type of an array like `a`, which may be anything with a shape and a dtype."""
    if not has_shape_and_dtype(a):
        check_operands(name, (a,))
    weak = dtype is None and bool(getattr(a, "weak_type", type(a) in (int, float, complex)))
    aval = a.cell.aval if isinstance(a, Holder) else aval_of(a)
    sizes = aval.shape if shape is None else as_shape(name, shape)
    return ShapedArray(sizes, aval.dtype if dtype is None else check_user_dtype(dtype, name), weak)


def _constant(value: Any, aval: ShapedArray, place: Any) -> Any:
    """An array of this type that holds one number everywhere: in each word of random keys.

    Of float0, of which there is but one value, it is an ndarray.
    """
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    if type(value) is int and not isinstance(aval.dtype, KeyType):
        check_fits(value, aval.dtype)
    is_keys = isinstance(aval.dtype, KeyType) and aval_of(value).dtype != aval.dtype
    if is_keys or state.builder is not None:
        return placed((_keys if is_keys else _staged)(value, aval), place)
    if type(place) is NamedSharding and place.spec.unreduced:
        return placed(_run_filled(value, aval), place)
    if is_less(aval.size, SMALL + 1) and not hasattr(value, "aval"):
        return device_put_value(_on_host(value, aval), place, aval=aval)
    if type(place) is NamedSharding:
        number = value if hasattr(value, "aval") else _on_host(value, aval.update(shape=()))
        return _run_split(device_put(number, place.update(spec=PartitionSpec())), aval, place)
    return placed(_run_filled(value, aval), place)


def _on_host(value: Any, aval: ShapedArray) -> np.ndarray:
    number = np.asarray(value)
    if number.dtype.kind == "c":
        warn_of_imaginary_part(aval.dtype)
    return np.full(aval.shape, number_on_host(number, aval.dtype), aval.dtype)


def _staged(value: Any, aval: ShapedArray) -> Any:
    scalar = in_dtype(value, aval.dtype, aval.weak_type)
    return broadcast_in_dim_p.bind(scalar, shape=aval.shape, broadcast_dimensions=())


@composite(static=("aval",))
def _run_filled(value: Any, aval: ShapedArray) -> Any:
    return _staged(value, aval)


@composite(static=("aval", "sharding"))
def _run_split(value: Any, aval: ShapedArray, sharding: NamedSharding) -> Any:
    """A sharded array, of which each device computes its own part."""
    return placed(_staged(value, aval), sharding)


@composite(static=("aval",))
def _keys(value: Any, aval: ShapedArray) -> Any:
    words = ShapedArray((*aval.shape, *aval.dtype.physical_shape), aval.dtype.physical_dtype)
    return wrap_p.bind(_staged(value, words), impl=aval.dtype.generator)


def _broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """An array broadcast to `shape`; ValueError where it does not fit."""
    own = aval_of(x).shape
    try:
        fits = broadcast_shapes(own, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"full: fill_value of shape {own} does not broadcast to shape {shape}")
    return broadcast_in_dim(as_operand("full", x), shape, range(len(shape) - len(own), len(shape)))
