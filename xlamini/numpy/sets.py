"""Sets of the values in arrays: unique values, union, intersection, differences, membership.

All of them sort, so that equal values are neighbors; a mask then selects the sorted elements of the result. Their
number depends on the values: it is counted, or given as `size`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.core import aval_of, issubdtype
from xlamini.core.sizes.expression import is_less
from xlamini.numpy.creation import full
from xlamini.numpy.distinct import Wanted, changes, counted, distinct, in_order, starts_of
from xlamini.numpy.joining import concatenate
from xlamini.numpy.searching import places
from xlamini.numpy.shapes import ravel
from xlamini.primitives import check_operands, expand_dims, in_dtype, promoted_dtypes, where
from xlamini.primitives.base import operators
from xlamini.primitives.reductions.sort import sort_p
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_BOOL = np.dtype(bool)


class UniqueAll(NamedTuple):
    """The results of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The results of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The results of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The distinct values of an array in increasing order, or its distinct slices along `axis`.

    On request also the index where each occurs first, for each element the index of its value in the result, and how
    often each occurs. NaNs are one value, unless `equal_nan` is False. The result is sorted also if `sorted` is False.

    How many there are depends on the values, so inside a traced function `size` must say how many are returned: what
    is beyond is dropped; what is missing is `fill_value`, or the smallest value, with count 0.

    >>> unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    wanted = Wanted(bool(return_index), bool(return_inverse), bool(return_counts))
    values, *others = distinct("unique", ar, axis, equal_nan, size, fill_value, wanted)
    asked = [part for part, needed in zip(others, wanted, strict=True) if needed]
    return (values, *asked) if asked else values


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The different values, the index where each occurs first, the inverse and the counts; each NaN is a value.

    >>> unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueAll(*distinct("unique_all", x, None, False, size, fill_value, Wanted(True, True, True)))


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueCounts:
    """The different values and how often each occurs; each NaN is a value.

    >>> unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    wanted = Wanted(counts=True)
    values, _, _, counts = distinct("unique_counts", x, None, False, size, fill_value, wanted)
    return UniqueCounts(values, counts)


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueInverse:
    """The different values and, in the shape of `x`, the index of each element's value; each NaN is a value.

    >>> unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    wanted = Wanted(inverse=True)
    values, _, inverse, _ = distinct("unique_inverse", x, None, False, size, fill_value, wanted)
    return UniqueInverse(values, inverse)


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The different values; each NaN is a value.

    >>> unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return distinct("unique_values", x, None, False, size, fill_value)[0]


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The values that one of two arrays has, in increasing order; `size` and `fill_value` are as in `unique`.

    >>> union1d(jnp.array([1, 3]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    return distinct("union1d", concatenate(_flat("union1d", ar1, ar2)), None, True, size, fill_value)[0]


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The values that both of two arrays have, in increasing order; on request also where each occurs first.

    Inside a traced function `size` is the length of the result; missing elements are `fill_value`, or the smallest
    common value, and their indices are the sizes of the arrays. `assume_unique` changes nothing.

    >>> intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3]))
    Array([2, 3], dtype=int32)
    """
    x, y = _flat("intersect1d", ar1, ar2)
    (values, order, _), (others, others_order, _) = in_order(x, 0, True, True), in_order(y, 0, True, True)
    mask = _first_and(values, isin(values, y))
    picked = _picked(values, mask, counted("intersect1d", mask, size), fill_value)
    if not return_indices:
        return picked[0]
    found, starts, taken = picked
    return found, *_indices_of(found, starts, taken, order, others, others_order)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The values of `ar1` that `ar2` has not, in increasing order, or as they come with `assume_unique`.

    Inside a traced function `size` must say how many are returned; missing ones are `fill_value`, or 0.

    >>> setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    check_operands("setdiff1d", (ar1, ar2))
    x = ravel(ar1)
    values = x if assume_unique else in_order(x, 0, True, False)[0]
    mask = isin(values, ar2, invert=True)
    mask = mask if assume_unique else _first_and(values, mask)
    return _picked(values, mask, counted("setdiff1d", mask, size), 0 if fill_value is None else fill_value)[0]


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The values that just one of two arrays has, in increasing order; `size` and `fill_value` are as in `unique`.

    `assume_unique` promises that neither array has a value twice.

    >>> setxor1d(jnp.array([1, 3]), jnp.array([2, 3]))
    Array([1, 2], dtype=int32)
    """
    x, y = _flat("setxor1d", ar1, ar2)
    values, mask = _in_one(x, y, assume_unique)
    return _picked(values, mask, counted("setxor1d", mask, size), fill_value)[0]


_METHODS = ("auto", "compare_all", "binary_search", "sort")
_FEW = 32


@composite(static=("assume_unique", "invert", "method"))
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Test elementwise whether `test_elements` has this value, or with `invert` whether not. NaN occurs nowhere.

    All methods give the same: "compare_all" compares each with each, the others search in the sorted elements.

    >>> isin(jnp.array([1, 2, 3]), jnp.array([2, 5]))
    Array([False,  True, False], dtype=bool)
    """
    if method not in _METHODS:
        raise ValueError(f"isin: method={method!r}; it takes one of {', '.join(map(repr, _METHODS))}")
    check_operands("isin", (element, test_elements))
    x, tests = promoted_dtypes(element, test_elements)
    tests = ravel(tests)
    found = _occurs(x, tests, method)
    return operators.bitwise_not(found) if invert else found


# --- helpers


def _flat(name: str, x: Any, y: Any) -> list[Any]:
    """Two arrays as rows of one dtype."""
    check_operands(name, (x, y))
    return [ravel(v) for v in promoted_dtypes(x, y)]


def _occurs(x: Any, tests: Any, method: str) -> Any:
    count = aval_of(tests).shape[0]
    if not count:
        return full(aval_of(x).shape, False, _BOOL)
    few = method == "auto" and is_less(count - 1, _FEW)
    if few or method == "compare_all" or issubdtype(aval_of(x).dtype, np.complexfloating):
        return operators.equal(expand_dims(x, (aval_of(x).ndim,)), tests).any(-1)
    (ordered,) = sort_p.bind(tests, dimension=0, is_stable=True, num_keys=1)
    return operators.equal(ordered.at[places(ordered, x, "left")].get(mode="clip"), x)


@composite()
def _first_and(values: Any, mask: Any) -> Any:
    """A mask of sorted values that differ from their predecessor, where the mask holds."""
    start = operators.equal(iota(np.dtype("int32"), values.shape[0]), 0)
    return operators.bitwise_and(operators.bitwise_or(changes(values, True), start), mask)


@composite(static=("assume_unique",))
def _in_one(x: Any, y: Any, assume_unique: bool) -> Any:
    """The values of two arrays in order, and which occur in one of them only, for the first time."""
    values, masks = [], []
    for own, other in ((x, y), (y, x)):
        (ordered,) = sort_p.bind(own, dimension=0, is_stable=True, num_keys=1)
        mask = isin(ordered, other, invert=True)
        values.append(ordered)
        masks.append(mask if assume_unique else _first_and(ordered, mask))
    return sort_p.bind(concatenate(values), concatenate(masks), dimension=0, is_stable=True, num_keys=1)


@composite(static=("size",))
def _picked(values: Any, mask: Any, size: int, fill_value: Any) -> Any:
    """The values where a mask holds, their places, and which of them are no filling."""
    starts, taken = starts_of(mask, size)
    if not values.shape[0]:
        return full(size, 0 if fill_value is None else fill_value, values.dtype), starts, taken
    found = values[starts]
    filling = found[:1] if fill_value is None else in_dtype(fill_value, values.dtype)
    some = operators.greater(mask.sum(), 0)
    filling = where(some, filling, in_dtype(0, values.dtype)) if fill_value is None else filling
    return where(taken, found, filling), starts, taken


@composite()
def _indices_of(found: Any, starts: Any, taken: Any, order: Any, others: Any, others_order: Any) -> Any:
    """The first index of each common value in both arrays; the arrays' sizes for padding."""
    sizes = order.shape[0], others_order.shape[0]
    if 0 in sizes:
        return tuple(full(starts.shape, size, order.dtype) for size in sizes)
    there = others_order.at[places(others, found, "left")].get(mode="clip")
    return tuple(where(taken, i, in_dtype(n, order.dtype)) for i, n in zip((order[starts], there), sizes, strict=True))
