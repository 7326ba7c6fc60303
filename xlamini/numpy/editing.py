"""Arrays with elements put in, taken out or overwritten: insert, delete, place, fill_diagonal."""
from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from xlamini.core import ConcretizationTypeError, ShapeError, TracerArrayConversionError, aval_of, issubdtype
from xlamini.core.sizes.expression import SymbolicSize, as_size, is_symbolic_shape, min_size
from xlamini.numpy.arguments import as_axis, as_operand, as_operand_beside
from xlamini.numpy.creation import full
from xlamini.numpy.cumulative import cumsum
from xlamini.numpy.indexing.take import take
from xlamini.numpy.repeating import broadcast_to
from xlamini.numpy.sorting import argsort, sort
from xlamini.primitives import broadcast_in_dim, convert, in_dtype, moveaxis, reshape, where
from xlamini.primitives.base import operators
from xlamini.primitives.base.promotion import check_dtypes
from xlamini.primitives.indexing.dynamic_slice import from_front
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_INDEX = np.dtype("int32")


# --- put in


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` with `values` put in before the places `obj` along an axis; of `arr` flattened, if no axis is given.

    `obj` is an integer, an array of integers or a slice; the places are those in `arr`, negative ones count from the
    end. `values` broadcast, and take on the dtype of `arr`. TypeError for other places.

    >>> insert(jnp.arange(3), 1, 9)
    Array([0, 9, 1, 2], dtype=int32)
    """
    x = as_operand("insert", arr)
    values = as_operand_beside("insert", values, x)
    x, along = _flat_or_axis("insert", x, axis)
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(aval_of(x).shape[along]))
    places = as_operand("insert", obj)
    if not issubdtype(aval_of(places).dtype, np.integer):
        raise ValueError(f"insert: obj must be of integers, got {aval_of(places).dtype}; for a mask give its nonzero")
    if aval_of(places).ndim > 1:
        raise ValueError(f"insert: obj must be a number or one-dimensional, got shape {aval_of(places).shape}")
    return _inserted(x, places, values, along)


def _flat_or_axis(name: str, x: Any, axis: int | None) -> tuple[Any, int]:
    if axis is None:
        return reshape(x, (aval_of(x).size,)), 0
    return x, as_axis(name, axis, aval_of(x).ndim)


@composite(static=("axis",))
def _inserted(x: Any, places: Any, values: Any, axis: int) -> Any:
    shape = aval_of(x).shape
    if not aval_of(places).ndim:
        values = _one_block(values, len(shape), axis)
        places = broadcast_in_dim(places, (aval_of(values).shape[axis],), ())
    count, length = aval_of(places).shape[0], shape[axis]
    values = broadcast_to(in_dtype(values, aval_of(x).dtype), (*shape[:axis], count, *shape[axis + 1 :]))
    places = in_dtype(_clipped(from_front(places, length), length), _INDEX)
    order = argsort(places)
    new = places[order] + iota(_INDEX, count)
    old = full(length + count, 1, _INDEX).at[new].set(0, mode="drop")
    source = cumsum(old) - 1  # for each position, its index among the old elements
    out = take(x, source, axis, mode="clip") if length else full(values.shape, 0, aval_of(x).dtype)
    at = (slice(None),) * axis
    return out.at[(*at, new)].set(take(values, order, axis, mode="clip"), mode="drop")


def _one_block(values: Any, ndim: int, axis: int) -> Any:
    """Values for one index: their first axis becomes the axis, along which several are inserted."""
    aval = aval_of(values)
    whole = reshape(values, (*(1,) * (ndim - aval.ndim), *aval.shape)) if aval.ndim < ndim else values
    return moveaxis(whole, 0, axis)


def _clipped(x: Any, most: int) -> Any:
    return where(operators.greater(x, most), in_dtype(most, aval_of(x).dtype), where(operators.less(x, 0), x * 0, x))


# --- taken out


def delete(
    arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """`arr` without the elements at `obj` along an axis; of `arr` flattened, if no axis is given.

    `obj` is an integer, an array of integers, a mask as long as the axis, or a slice; negative indices count from the
    end. The length of the result follows from its values, so they must be concrete while tracing; but with
    `assume_unique_indices` integers are taken to differ, and may be traced. ValueError for an index out of bounds.

    >>> delete(jnp.arange(4), jnp.array([0, 2]))
    Array([1, 3], dtype=int32)
    """
    x, along = _flat_or_axis("delete", as_operand("delete", arr), axis)
    length = aval_of(x).shape[along]
    if assume_unique_indices and isinstance(obj, Array) and issubdtype(aval_of(obj).dtype, np.integer):
        return _without_unique(x, reshape(obj, (aval_of(obj).size,)), along)
    if is_symbolic_shape((length, obj)) and isinstance(obj, int | np.integer | SymbolicSize):
        return _without_one(x, as_size(obj), along)
    gone = _mask_of(obj, operator.index(length))
    return take(x, np.nonzero(~gone)[0], along, mode="clip") if length else x


@composite(static=("place", "axis"))
def _without_one(x: Any, place: int, axis: int) -> Any:
    length = aval_of(x).shape[axis]
    if not -length <= place < length:
        raise ValueError(f"delete: index {place} is out of bounds for an axis of length {length}")
    kept = iota(_INDEX, length - 1)
    first = place + length if place < 0 else place
    return take(x, kept + convert(operators.greater_equal(kept, first), _INDEX), axis, mode="clip")


def _mask_of(obj: Any, length: int) -> np.ndarray:
    """A mask of the elements that `obj` selects."""
    gone = np.zeros(length, bool)
    if isinstance(obj, slice):
        gone[obj] = True
        return gone
    places = _values(obj)
    if places.dtype == bool:
        if places.shape != (length,):
            raise ValueError(f"delete: the mask has shape {places.shape}, but the axis has length {length}")
        return places
    if places.dtype.kind not in "iu":
        raise ValueError(f"delete: obj must be of integers or bools, got {places.dtype}; convert it with .astype(int)")
    outside = places[(places < -length) | (places >= length)]
    if outside.size:
        error = IndexError if places.ndim else ValueError
        raise error(f"delete: index {outside.flat[0]} is out of bounds for an axis of length {length}")
    gone[places] = True
    return gone


def _values(obj: Any) -> np.ndarray:
    try:
        return np.asarray(as_operand("delete", obj))
    except TracerArrayConversionError as error:
        raise ConcretizationTypeError(
            "delete: the length of the result depends on `obj`, whose values are not known while tracing; pass "
            f"assume_unique_indices=True if they are all different. {error}"
        ) from None


@composite(static=("axis",))
def _without_unique(x: Any, places: Any, axis: int) -> Any:
    """Between the sorted places, each element moves down by the number of places up to it."""
    length, count = aval_of(x).shape[axis], aval_of(places).shape[0]
    kept = iota(_INDEX, length - count)
    sorted_places = sort(convert(from_front(places, length), _INDEX)) - iota(_INDEX, count)
    passed = operators.greater_equal(kept[:, None], sorted_places[None, :]).sum(1)
    return take(x, kept + passed, axis, mode="clip")


# --- overwritten


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """A copy of `arr` whose elements where `mask` holds are those of `vals`, one after the other, repeated as needed.

    Arrays are immutable, so `inplace` must be given as False (else NotImplementedError). ValueError for a mask of
    another size, or no values.

    >>> place(jnp.arange(4), jnp.array([True, False, True, True]), jnp.array([7, 8]), inplace=False)
    Array([7, 1, 8, 7], dtype=int32)
    """
    _refuse_inplace("place", inplace)
    x, held = as_operand("place", arr), as_operand("place", mask)
    new = as_operand_beside("place", vals, x)
    if aval_of(held).size != aval_of(x).size:
        raise ValueError(f"place: the mask has shape {aval_of(held).shape}, but the array {aval_of(x).shape}")
    if not aval_of(new).size:
        raise ValueError("place: there are no values to place, `vals` is empty")
    return _placed(x, held, new)


@composite()
def _placed(x: Any, mask: Any, values: Any) -> Any:
    aval, size = aval_of(x), aval_of(values).size
    check_dtypes(x, values)
    held = convert(reshape(mask, (aval.size,)), np.dtype(bool))
    which = operators.remainder(cumsum(convert(held, _INDEX)) - 1, size)
    new = take(reshape(in_dtype(values, aval.dtype), (size,)), which, mode="clip")
    return reshape(where(held, new, reshape(x, (aval.size,))), aval.shape)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy of `a` with `val` on its main diagonal, repeated as needed.

    Arrays are immutable, so `inplace` must be given as False (else NotImplementedError). With more than two axes all
    must have one length (ValueError).

    >>> fill_diagonal(jnp.zeros((2, 2)), 5, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    _refuse_inplace("fill_diagonal", inplace)
    if wrap:
        raise NotImplementedError("fill_diagonal: `wrap` must be False; fill the blocks of a tall matrix one by one")
    x = as_operand("fill_diagonal", a)
    value = as_operand_beside("fill_diagonal", val, x)
    shape = aval_of(x).shape
    if len(shape) < 2:
        raise ValueError(f"fill_diagonal: two axes are needed at least, got shape {shape}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"fill_diagonal: all axes must have one length where there are over two, got shape {shape}")
    return _with_diagonal(x, value)


@composite()
def _with_diagonal(x: Any, value: Any) -> Any:
    aval = aval_of(x)
    check_dtypes(x, value)
    diagonal = iota(_INDEX, functools.reduce(min_size, aval.shape))
    value = in_dtype(value, aval.dtype)
    if aval_of(value).ndim:
        flat = reshape(value, (aval_of(value).size,))
        value = take(flat, operators.remainder(diagonal, aval_of(value).size), mode="clip")
    return x.at[(diagonal,) * aval.ndim].set(value)


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise NotImplementedError(f"{name}: arrays are immutable; pass inplace=False and use what is returned")
