"""Sorted arrays, the order that sorts them, and where extrema are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.dtypes import canonicalize_dtype, check_user_dtype
from xlamini.core.errors import ShapeError
from xlamini.core.tracer import aval_of
from xlamini.numpy.arguments import as_axis, as_operand, as_operands, refuse_out
from xlamini.primitives.arg_extrema import ArgExtremum, argmax_p, argmin_p
from xlamini.primitives.iota import iota_p
from xlamini.primitives.shape import expand_dims, reshape, rev
from xlamini.primitives.sort import sort_p
from xlamini.runtime.array import Array
from xlamini.transforms.composite import composite
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

    `descending` turns the result around. TypeError for `kind` and `order`, which NumPy has and xlamini has not.

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


@composite(static=("axis",))
def lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The indices that sort by several keys: by the last one first, and by the ones before it where that is equal.

    ShapeError where the keys differ in shape.

    >>> lexsort((jnp.array([1, 0, 2]), jnp.array([5, 5, 4])))
    Array([2, 1, 0], dtype=int32)
    """
    arrays = as_operands("lexsort", keys)[::-1]
    shape = aval_of(arrays[0]).shape
    if any(aval_of(x).shape != shape for x in arrays):
        raise ShapeError(f"lexsort: the keys must share one shape, got {[aval_of(x).shape for x in arrays[::-1]]}")
    axis = as_axis("lexsort", axis, len(shape))
    places = iota_p.bind(dtype=canonicalize_dtype(int), shape=shape, dimension=axis)
    return sort_p.bind(*arrays, places, dimension=axis, is_stable=True, num_keys=len(arrays))[-1]


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


def _refuse(name: str, kind: Any, order: Any) -> None:
    if kind is not None or order is not None:
        raise TypeError(f"{name}: `kind` and `order` must be None; ask for stable=True or stable=False instead")
