"""Arrays made of parts of others: chosen by index or condition, repeated to a size, without zeros at the ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ConcretizationTypeError, TracerArrayConversionError
from xlamini.core.sizes.expression import SymbolicSize, is_symbolic_shape
from xlamini.numpy.arguments import as_axes, as_axis, as_index, as_operand, as_operands, refuse_out
from xlamini.numpy.creation import zeros
from xlamini.numpy.indexing.take import take, take_along_axis
from xlamini.numpy.joining import concatenate, stack
from xlamini.numpy.repeating import broadcast_arrays
from xlamini.numpy.searching import concrete_values, nonzero
from xlamini.numpy.shapes import ravel
from xlamini.primitives import (
    INTEGER,
    broadcast_in_dim,
    clamp,
    convert,
    in_dtype,
    kind_of,
    promoted_dtypes,
    reshape,
    slice_in_dim,
    where,
)
from xlamini.primitives.base import operators
from xlamini.primitives.base.promotion import check_members
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, ShapeLike


def choose(
    a: ArrayLike, choices: Array | np.ndarray | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Pick each element from the choice that `a` numbers, at the element's own position; all arguments broadcast.

    `mode` sets the meaning of a number out of range: an error ("raise", ValueError; not inside a traced function, where
    values are unknown), the nearest one ("clip"), or its remainder ("wrap").

    >>> choose(jnp.array([1, 0]), [jnp.array([1, 2]), 10])
    Array([10,  2], dtype=int32)
    """
    refuse_out("choose", out)
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"choose: mode={mode!r}; it takes 'raise', 'clip' or 'wrap'")
    numbers, options = as_operand("choose", a), as_operands("choose", choices)
    check_members(choices if isinstance(choices, list | tuple) else ())
    if kind_of(numbers.dtype) not in INTEGER:
        raise ValueError(f"choose: `a` must be of integers, got {numbers.dtype}; it numbers the choices")
    if mode == "raise":
        known = _known_numbers(numbers)
        if np.any((known < 0) | (known >= len(options))):
            raise ValueError(f"choose: `a` has numbers outside 0 to {len(options) - 1}; see the argument `mode`")
    return _choose(numbers, options, mode)


def _known_numbers(numbers: Any) -> np.ndarray:
    try:
        return np.asarray(numbers)
    except TracerArrayConversionError as error:
        raise ConcretizationTypeError(
            f"choose: values of `a` are not known while tracing, so none can be refused; use mode='clip'. {error}"
        ) from None


@composite(static=("mode",))
def _choose(numbers: Any, options: list[Any], mode: str) -> Any:
    count = len(options)
    dtype = numbers.dtype
    if mode == "wrap":
        numbers = operators.remainder(numbers, count)
    else:
        numbers = clamp(in_dtype(0, dtype), numbers, in_dtype(count - 1, dtype))
    numbers, *options = broadcast_arrays(numbers, *promoted_dtypes(*options))
    table = stack(options)
    table = convert(table, table.dtype)
    return take_along_axis(table, reshape(numbers, (1, *numbers.shape)), 0)[0]


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The slices along `axis` for which a condition, of one dimension, holds; elements of the flattened array if None.

    The condition may be shorter than the axis. Inside a traced function `size` must say how many are returned; missing
    ones are `fill_value`.

    >>> compress(jnp.array([False, True]), jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([[3, 4]], dtype=int32)
    """
    refuse_out("compress", out)
    mask, array = as_operand("compress", condition), as_operand("compress", a)
    if mask.ndim != 1:
        raise ValueError(f"compress: the condition must be one-dimensional, got shape {mask.shape}")
    return _compressed("compress", mask, array, axis, size, fill_value)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of a flattened array for which the flattened condition holds; see `compress`.

    >>> extract(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    mask, array = as_operand("extract", condition), as_operand("extract", arr)
    return _compressed("extract", ravel(mask), array, None, size, fill_value)


def _compressed(name: str, mask: Any, array: Any, axis: int | None, size: int | None, fill_value: Any) -> Any:
    array, along = (ravel(array), 0) if axis is None else (array, as_axis(name, axis, array.ndim))
    length = array.shape[along]
    if not mask.shape[0] <= length:
        raise ValueError(f"{name}: a condition of length {mask.shape[0]} for {length} elements; drop what is too much")
    count = int(np.count_nonzero(concrete_values(name, mask))) if size is None else as_index(name, "size", size)
    return _slices(mask, array, fill_value, along, count)


@composite(static=("axis", "size"))
def _slices(mask: Any, array: Any, fill_value: Any, axis: int, size: int) -> Any:
    found = convert(mask, np.dtype(bool))
    (places,) = nonzero(found, size=size, fill_value=0)
    shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
    filling = in_dtype(fill_value, array.dtype)
    if not array.size:
        return broadcast_in_dim(filling, shape, ())
    taken = operators.less(iota(np.dtype("int32"), size), found.sum())
    return where(broadcast_in_dim(taken, shape, (axis,)), take(array, places, axis=axis, mode="clip"), filling)


@composite(static=("new_shape",))
def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """The elements in row-major order in another shape: repeated if they are too few, cut off if they are too many.

    Of no elements zeros are made. ValueError for a negative size.

    >>> resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    array = as_operand("resize", a)
    several = isinstance(new_shape, Sequence) or (type(new_shape) is not SymbolicSize and np.ndim(new_shape))
    shape = tuple(new_shape) if several else (new_shape,)  # type: ignore[arg-type]
    shape = tuple(as_index("resize", "a size in new_shape", n) for n in shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"resize: new_shape has no negative sizes, got {shape}")
    size, row = math.prod(shape), ravel(array)
    if not row.shape[0]:
        return zeros(shape, array.dtype)
    if is_symbolic_shape((size, row.shape[0])):
        places = operators.remainder(iota(np.dtype("int32"), size), row.shape[0])
        return reshape(take(row, places, mode="clip"), shape)
    times = -(-size // row.shape[0])
    row = concatenate([row] * times) if times > 1 else row
    return reshape(slice_in_dim(row, 0, size), shape)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """An array without the slices at its ends that are all 0: at the front ("f"), the back ("b") or both, of each axis.

    How many those are depends on the values, so it does not work inside a traced function.

    >>> trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    array = as_operand("trim_zeros", filt)
    if not isinstance(trim, str) or not set(trim.lower()) <= set("fb"):
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    axes = as_axes("trim_zeros", axis, array.ndim)
    nonzeros = concrete_values("trim_zeros", array, "call it outside") != 0
    bounds = [slice(None)] * array.ndim
    for d in axes:
        bounds[d] = _bounds(nonzeros.any(tuple(other for other in range(array.ndim) if other != d)), trim.lower())
    return array[tuple(bounds)]


def _bounds(nonzeros: Any, trim: str) -> slice:
    places = np.flatnonzero(nonzeros)
    if not len(places):
        return slice(0, 0)
    return slice(int(places[0]) if "f" in trim else 0, int(places[-1]) + 1 if "b" in trim else len(nonzeros))
