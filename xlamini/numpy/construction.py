"""Construction of arrays: array, asarray, astype, copy, and bytes read as arrays."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import (
    Literal,
    ShapedArray,
    Tracer,
    canonicalize_dtype,
    check_user_dtype,
    hooks,
    result_type,
    tree_leaves,
    user_stacklevel,
)
from xlamini.core.dtypes import dtype_of, float0
from xlamini.core.flags.jax_flags import warn_of_narrowing
from xlamini.core.tracing.host_arrays import as_ndarray, refuse_masked
from xlamini.core.tracing.state import state
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.joining import stack
from xlamini.numpy.out_placement import as_place, placed
from xlamini.primitives import cast_on_host, convert, reshape, stands_for_array, warn_of_imaginary_part
from xlamini.primitives.base.promotion import PYTHON_SCALARS
from xlamini.runtime import Array, ArrayImpl, device_put_value
from xlamini.runtime.arrays.keys import PRNGKeyArray
from xlamini.runtime.arrays.to_device import copy_of
from xlamini.transforms.sharding.device_put import device_put
from xlamini.typing import ArrayLike, DTypeLike

_ARRAYS = (ArrayImpl, Tracer, Literal, PRNGKeyArray)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of a number, an array, nested lists of these, or anything NumPy can make an array of.

    An Array of the right dtype is returned itself, unless `copy`. The result lies on `device`, or is split over a mesh
    as `out_sharding` says, a PartitionSpec or NamedSharding. With x64 off a 64-bit NumPy array is narrowed; without a
    dtype there is a warning for floats, and for integers that do not fit. TypeError for values that are no numbers,
    ValueError for nested lists of uneven length, OverflowError for integers out of range.

    >>> asarray([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    _check_order("asarray", order)
    place = as_place("asarray", device, out_sharding)
    made = _put(_value("asarray", a, dtype), place)
    return copy_of(a) if copy and made is a and type(a) is ArrayImpl else made


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Like `asarray`, but a copy, and of at least `ndmin` dimensions.

    >>> array([1, 2], ndmin=2)
    Array([[1, 2]], dtype=int32)
    """
    _check_order("array", order)
    place = as_place("array", device, out_sharding)
    value = _value("array", object, dtype)
    if ndmin and np.ndim(value) < ndmin:
        value = reshape(_put(value), (1,) * (ndmin - np.ndim(value)) + np.shape(value))
    made = _put(value, place)
    return copy_of(object) if copy and made is object and type(object) is ArrayImpl else made


def _check_order(name: str, order: str | None) -> None:
    if order not in (None, "K", "C"):
        raise NotImplementedError(f"{name}: order={order!r}, but XLA chooses the layout; leave `order` out")


def _made(name: str, x: Any, dtype: Any) -> Any:
    return _put(_value(name, x, dtype))


def _put(value: Any, place: Any = None) -> Any:
    """An array of the values from `_value`; a sharded ndarray is sent to each device in parts, never as a whole."""
    if type(value) in _ARRAYS:
        return placed(value, place)
    if type(value) is np.ndarray and value.dtype == float0:  # no device holds tangents of integers
        return value
    if place is None or state.builder is not None:
        return placed(device_put_value(value), place)
    return device_put(value, place)


def _in_asked(value: Any, dtype: Any) -> Any:
    """An ndarray in the dtype that was asked for, which a device would narrow, as an array."""
    wide = type(value) is np.ndarray and value.dtype == dtype != canonicalize_dtype(dtype)
    return device_put_value(value, aval=ShapedArray(value.shape, dtype)) if wide else value


def _value(name: str, x: Any, dtype: Any) -> Any:
    """An array in the requested dtype; anything else as an ndarray or a number."""
    if dtype is None and type(x) is np.ndarray:
        return _warned_of(name, x)
    wanted = None if dtype is None else check_user_dtype(dtype, name)
    if type(x) in _ARRAYS:
        return x if wanted is None else convert(x, wanted)
    if type(x) in PYTHON_SCALARS:
        return x if wanted is None else _in_asked(np.asarray(x, wanted), wanted)
    if isinstance(x, list | tuple):
        return _in_asked(_nested(name, x, wanted), wanted)
    if stands_for_array(x):
        return _value(name, x.__jax_array__(), wanted)
    return _foreign(name, x, wanted)


def _warned_of(name: str, x: np.ndarray) -> np.ndarray:
    """The array, which is narrowed when it is put onto a device, with a warning if digits or values are lost."""
    narrow = canonicalize_dtype(x.dtype)
    if x.dtype != narrow and warn_of_narrowing.value and not _fits(x, narrow):
        warnings.warn(
            f"{name}: the {x.dtype} array is narrowed to {narrow}, because 64-bit dtypes are off. Pass "
            f"dtype={str(narrow)!r} to say that this is meant, or turn them on with "
            "config.update('jax_enable_x64', True).",
            UserWarning,
            user_stacklevel(),
        )
    return x


def _fits(x: np.ndarray, narrow: np.dtype) -> bool:
    """Whether the narrower dtype holds every value of an array of integers; floats lose digits."""
    if x.dtype.kind not in "iu":
        return False
    limits = np.iinfo(narrow)
    return not x.size or bool(limits.min <= x.min() and x.max() <= limits.max)


def _foreign(name: str, x: Any, wanted: Any) -> Any:
    """An ndarray of anything NumPy can read; TypeError for objects that are no numbers, ValueError for None."""
    if x is None:
        raise ValueError(f"{name}: None is no array of numbers; pass numbers or lists of them")
    value = None if isinstance(x, str | bytes) else as_ndarray(x)
    if value is None or value.dtype.kind in "OSUMm":
        raise TypeError(f"{name}: {type(x).__name__} {_shown(x)} is no array of numbers; pass numbers or lists of them")
    if wanted is None:
        return value
    if value.dtype.kind == "c":
        warn_of_imaginary_part(wanted)
    return _in_asked(cast_on_host(value, wanted), wanted)


def _shown(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 40 else text[:37] + "..."


# --- nested lists


def _nested(name: str, x: Sequence[Any], wanted: Any) -> Any:
    leaves = [leaf.__jax_array__() if stands_for_array(leaf) else leaf for leaf in tree_leaves(x)]
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            refuse_masked(leaf)
    if any(type(leaf) in _ARRAYS for leaf in leaves):
        parts = [_made(name, part, None) for part in x]
        return stack(parts, dtype=result_type(*leaves) if wanted is None else wanted)
    dtype = _common_dtype(name, leaves) if wanted is None else wanted
    value = _filled(name, x, dtype)
    if value.size != sum(np.size(leaf) for leaf in leaves):
        raise TypeError(f"{name}: the nested lists hold None; pass numbers only")
    return value


def _filled(name: str, x: Sequence[Any], dtype: Any) -> np.ndarray:
    try:
        return np.array(x, dtype)
    except TypeError:
        raise TypeError(
            f"{name}: the nested lists hold None, or values that do not convert to {dtype}; pass numbers only"
        ) from None
    except ValueError as error:
        raise ValueError(f"{name}: {error} Give the nested lists equal lengths, or pad them") from None


def _common_dtype(name: str, leaves: Sequence[Any]) -> Any:
    """The dtype that numbers and NumPy's values promote to; of floats, if there are none."""
    kinds = {type(x) if type(x) in PYTHON_SCALARS else _dtype(name, x) for x in leaves}
    return result_type(*kinds) if kinds else canonicalize_dtype(float)


def _dtype(name: str, x: Any) -> Any:
    try:
        return dtype_of(x)
    except TypeError:
        raise TypeError(
            f"{name}: the nested lists hold {type(x).__name__} {_shown(x)}, which is no number; pass numbers only"
        ) from None


# --- others


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Any = None) -> Array:
    """Convert `x` to another dtype; to the default one for floats, if it is None.

    Floats lose what is behind the point, complex numbers their imaginary part; anything but 0 is True.

    >>> astype(xlamini.numpy.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    """
    wanted = canonicalize_dtype(float) if dtype is None else check_user_dtype(dtype, "astype")
    made = convert(as_operand("astype", x), wanted)
    if copy and made is x and type(x) is ArrayImpl:
        made = copy_of(x)
    return made if device is None else device_put(made, device)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """An array of its own with the values of `a`.

    >>> jnp.copy(np.arange(2))
    Array([0, 1], dtype=int32)
    """
    return array(a, copy=True, order=order)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """An array of the numbers whose bytes a buffer holds.

    >>> frombuffer(bytes([1, 2]), "uint8")
    Array([1, 2], dtype=uint8)
    """
    return device_put_value(np.frombuffer(buffer, np.dtype(dtype), count, offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array of the numbers that a text lists, parted by `sep`.

    >>> jnp.fromstring("1 2 3", "int32", sep=" ")
    Array([1, 2, 3], dtype=int32)
    """
    return device_put_value(np.fromstring(string, np.dtype(dtype), count, sep=sep))


def fromiter(iter: Any, dtype: DTypeLike, count: int = -1) -> Array:
    """An array of the numbers that an iterable gives.

    >>> jnp.fromiter((i * i for i in range(3)), "int32")
    Array([0, 1, 4], dtype=int32)
    """
    return device_put_value(np.fromiter(iter, np.dtype(dtype), count))


def _of_scalar_type(x: Any, dtype: np.dtype) -> Any:
    """`jnp.float32(x)`, which reads text too, as Python's float does."""
    return _made(dtype.name, np.asarray(x, dtype) if isinstance(x, str) else x, dtype)


hooks.install(make_array=_of_scalar_type)
