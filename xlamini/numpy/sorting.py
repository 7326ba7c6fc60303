"""Sorted and partitioned arrays, the order that sorts them, and where extrema are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from xlamini.core import ShapeError, aval_of, canonicalize_dtype, check_user_dtype, issubdtype, result_type
from xlamini.numpy.arguments import as_axis, as_index, as_operand, as_operands, as_whole, refuse_out
from xlamini.numpy.indexing.take import take_along_axis
from xlamini.primitives import convert, expand_dims, reshape, rev, slice_in_dim
from xlamini.primitives.reductions.arg_extrema import ArgExtremum, argmax_p, argmin_p
from xlamini.primitives.reductions.sort import sort_p
from xlamini.primitives.reductions.top_k import top_k_p
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.iota import iota_p
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike


@composite(static=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements in increasing order along `axis`; of the flattened array if it is None. NaNs come last.

    `descending` reverses the result. TypeError for `kind` and `order`, which NumPy has and xlamini has not.

    >>> sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _refuse("sort", kind, order)
    a, axis = _along("sort", a, axis)
    (result,) = sort_p.bind(a, dimension=axis, is_stable=bool(stable), num_keys=1)
    return rev(result, (axis,)) if descending else result


@composite(static=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices that put an array in increasing order along `axis`; of the flattened array if it is None.

    Equal elements keep their order (also where `descending`) if `stable`. TypeError for `kind` and `order`.

    >>> argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _refuse("argsort", kind, order)
    a, axis = _along("argsort", a, axis)
    dtype = canonicalize_dtype(int) if dtype is None else check_user_dtype(dtype, "argsort")
    places = iota_p.bind(dtype=dtype, shape=aval_of(a).shape, dimension=axis)
    if not descending:
        return sort_p.bind(a, places, dimension=axis, is_stable=bool(stable), num_keys=1)[1]
    # Sorted from behind and turned around, so that equal elements keep their order.
    operands = rev(a, (axis,)), rev(places, (axis,))
    return rev(sort_p.bind(*operands, dimension=axis, is_stable=bool(stable), num_keys=1)[1], (axis,))


@composite(static=("axis", "batch_size"))
def lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16) -> Array:
    """The indices that sort by several keys: by the last one first, and by the ones before it where that is equal.

    More than `batch_size` keys of one dtype are sorted by so many at a time, as a sort by many keys takes long to
    compile. ShapeError where the keys differ in shape.

    >>> lexsort((jnp.array([1, 0, 2]), jnp.array([5, 5, 4])))
    Array([2, 1, 0], dtype=int32)
    """
    arrays = as_operands("lexsort", keys)[::-1]
    shape = aval_of(arrays[0]).shape
    if any(aval_of(x).shape != shape for x in arrays):
        raise ShapeError(f"lexsort: the keys must share one shape, got {[aval_of(x).shape for x in arrays[::-1]]}")
    axis = as_axis("lexsort", axis, len(shape))
    places = counted = iota_p.bind(dtype=canonicalize_dtype(int), shape=shape, dimension=axis)
    alike = len({aval_of(x).dtype for x in arrays}) == 1
    step = max(as_index("lexsort", "batch_size", batch_size), 1) if alike else len(arrays)
    for i in range((len(arrays) - 1) // step * step, -1, -step):
        keys = [x if places is counted else take_along_axis(x, places, axis) for x in arrays[i : i + step]]
        places = sort_p.bind(*keys, places, dimension=axis, is_stable=True, num_keys=len(keys))[-1]
    return places


@composite(static=("k", "axis", "mode", "sorted"))
def top_k(
    a: ArrayLike,
    k: int,
    /,
    *,
    axis: int = -1,
    mode: Literal["largest", "smallest"] = "largest",
    sorted: bool = True,
) -> tuple[Array, Array]:
    """The `k` largest, or smallest, elements along `axis` and their indices; NaNs count as largest.

    They come in order, of equal elements the first one first; `sorted=False` permits another order, of which no
    platform makes use. ValueError for a `k` that the axis does not have, and for another mode.

    >>> top_k(jnp.array([3, 1, 4, 2]), 2)
    (Array([4, 3], dtype=int32), Array([2, 0], dtype=int32))
    """
    x, k = as_operand("top_k", a), as_whole("top_k", "k", k)
    axis = as_axis("top_k", axis, aval_of(x).ndim)
    if not 0 <= k <= aval_of(x).shape[axis]:
        raise ValueError(f"top_k: k is {k}, but axis {axis} of shape {aval_of(x).shape} has other numbers of elements")
    if mode == "largest":
        values, indices = top_k_p.bind(x, k=k, axis=axis)
        return values, indices
    if mode != "smallest":
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    places = iota_p.bind(dtype=np.dtype("int32"), shape=aval_of(x).shape, dimension=axis)
    ordered = sort_p.bind(x, places, dimension=axis, is_stable=True, num_keys=1)
    values, indices = (slice_in_dim(y, 0, k, axis=axis) for y in ordered)
    return values, indices


@composite(static=("kth", "axis"))
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Partition the elements along `axis`: those that sort before index `kth` come before it, the others after.

    The former are in increasing, the latter in decreasing order. NotImplementedError for complex numbers.

    >>> partition(jnp.array([5, 1, 4, 2]), 1)
    Array([1, 2, 5, 4], dtype=int32)
    """
    a, axis, kth = _partition_arguments("partition", a, kth, axis)
    (ordered,) = sort_p.bind(a, dimension=axis, is_stable=True, num_keys=1)
    length = aval_of(a).shape[axis]
    low, high = slice_in_dim(ordered, 0, kth + 1, axis=axis), slice_in_dim(ordered, kth + 1, length, axis=axis)
    return concatenate([low, rev(high, (axis,))], axis)


@composite(static=("kth", "axis"))
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices of the elements that sorting would put before place `kth`, in increasing order, then of the others.

    >>> argpartition(jnp.array([5, 1, 4, 2]), 1)
    Array([1, 3, 0, 2], dtype=int32)
    """
    a, axis, kth = _partition_arguments("argpartition", a, kth, axis)
    places = iota_p.bind(dtype=canonicalize_dtype(int), shape=aval_of(a).shape, dimension=axis)
    order = sort_p.bind(a, places, dimension=axis, is_stable=True, num_keys=1)[1]
    length = aval_of(a).shape[axis]
    low, high = slice_in_dim(order, 0, kth + 1, axis=axis), slice_in_dim(order, kth + 1, length, axis=axis)
    (high,) = sort_p.bind(high, dimension=axis, is_stable=True, num_keys=1)
    return concatenate([low, high], axis)


@composite()
def sort_complex(a: ArrayLike) -> Array:
    """The elements as complex numbers in increasing order along the last axis: by real part, then by imaginary part.

    >>> sort_complex(jnp.array([2, 1]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x, axis = _along("sort_complex", a, -1)
    (ordered,) = sort_p.bind(x, dimension=axis, is_stable=True, num_keys=1)
    return convert(ordered, result_type(aval_of(ordered).dtype, np.complex64))


@composite(static=("axis", "keepdims"))
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the largest element along `axis`, or in the flattened array; the first one, or the first NaN.

    ValueError for an axis that the array does not have, and where there is no element.

    >>> argmax(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return _arg_extremum("argmax", argmax_p, a, axis, out, keepdims)


@composite(static=("axis", "keepdims"))
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the smallest element along `axis`, or in the flattened array; the first one, or the first NaN.

    ValueError for an axis that the array does not have, and where there is no element.

    >>> argmin(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    return _arg_extremum("argmin", argmin_p, a, axis, out, keepdims)


def _arg_extremum(name: str, primitive: ArgExtremum, a: Any, axis: int | None, out: None, keepdims: bool | None) -> Any:
    refuse_out(name, out)
    shape = aval_of(as_operand(name, a)).shape
    x, along = _along(name, a, axis)
    if not aval_of(x).shape[along]:
        raise ValueError(f"{name}: axis {axis} of shape {shape} is empty, so no element is the extremum")
    found = primitive.bind(x, axes=(along,), index_dtype=canonicalize_dtype(int))
    if not keepdims:
        return found
    return expand_dims(found, range(len(shape)) if axis is None else (along,))


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """The array and the axis to work along; the array flattened if that is None."""
    a = as_operand(name, a)
    aval = aval_of(a)
    if axis is None:
        return reshape(a, (aval.size,)), 0
    return a, as_axis(name, axis, aval.ndim)


def _partition_arguments(name: str, a: Any, kth: int, axis: int) -> tuple[Any, int, int]:
    """The array, the axis and the place, both counted from the front."""
    a, along = _along(name, a, axis)
    if issubdtype(aval_of(a).dtype, np.complexfloating):
        raise NotImplementedError(f"{name}: complex numbers are not accepted; use sort_complex")
    place, length = as_index(name, "kth", kth), aval_of(a).shape[along]
    if not -length <= place < length:
        raise ValueError(f"{name}: kth={place} is out of range for axis {along} of length {length}")
    return a, along, place + length if place < 0 else place


def _refuse(name: str, kind: Any, order: Any) -> None:
    if kind is not None or order is not None:
        raise TypeError(f"{name}: `kind` and `order` must be None; ask for stable=True or stable=False instead")
