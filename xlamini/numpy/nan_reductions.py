"""Reductions that pass over NaNs: each puts a harmless number in their place, or leaves them out of the count."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import aval_of, issubdtype, literal
from xlamini.numpy.arguments import as_operand, refuse_out
from xlamini.numpy.medians import median
from xlamini.numpy.reductions import AND, SUM, Axis, as_mask, max, min, prod, reduce, sum
from xlamini.numpy.sorting import argmax, argmin
from xlamini.numpy.statistics import between, flat_rows, mean, std, var
from xlamini.primitives import (
    add,
    bitwise_and,
    broadcasted_freely,
    clamp,
    convert,
    eq,
    expand_dims,
    full,
    highest,
    lowest,
    mul,
    ne,
    sub,
    where as select,
)
from xlamini.primitives.elementwise.bitwise import shift_right_arithmetic
from xlamini.primitives.reductions.sort import sort_p
from xlamini.primitives.shape.iota import iota_p
from xlamini.primitives.shape.reorder import one_of_each_row
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.custom.custom_jvp import custom_jvp
from xlamini.typing import ArrayLike, DTypeLike


@composite(static=("axis", "dtype", "keepdims"))
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum over `axis` with NaNs taken for 0; the arguments are those of `sum`.

    >>> nansum(jnp.array([1.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    return sum(_replaced("nansum", a, lambda dtype: 0), axis, dtype, out, keepdims, initial, where)


@composite(static=("axis", "dtype", "keepdims"))
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product over `axis` with NaNs taken for 1; the arguments are those of `prod`.

    >>> nanprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array(6., dtype=float32)
    """
    return prod(_replaced("nanprod", a, lambda dtype: 1), axis, dtype, out, keepdims, initial, where)


@composite(static=("axis", "keepdims"))
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element over `axis` that is not NaN; NaN where all are.

    >>> nanmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2., dtype=float32)
    """
    found = max(_replaced("nanmax", a, lowest), axis, out, keepdims, initial, where)
    return found if initial is not None else _nan_where_all_are("nanmax", a, found, axis, keepdims)


@composite(static=("axis", "keepdims"))
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element over `axis` that is not NaN; NaN where all are.

    >>> nanmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1., dtype=float32)
    """
    found = min(_replaced("nanmin", a, highest), axis, out, keepdims, initial, where)
    return found if initial is not None else _nan_where_all_are("nanmin", a, found, axis, keepdims)


@composite(static=("axis", "dtype", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean over `axis` of the elements that are not NaN; NaN where all are.

    >>> nanmean(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1.5, dtype=float32)
    """
    return mean(a, axis, dtype, out, keepdims, where=_numbers("nanmean", a, where))


@composite(static=("axis", "dtype", "keepdims", "ddof"))
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance over `axis` of the elements that are not NaN; the arguments are those of `var`.

    >>> nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    numbers = _numbers("nanvar", a, where)
    return var(a, axis, dtype, out, ddof, keepdims, where=numbers, mean=mean)


@composite(static=("axis", "dtype", "keepdims", "ddof"))
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation over `axis` of the elements that are not NaN; the arguments are those of `std`.

    >>> nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    numbers = _numbers("nanstd", a, where)
    return std(a, axis, dtype, out, ddof, keepdims, where=numbers, mean=mean)


@composite(static=("axis", "keepdims", "overwrite_input"))
def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The median over `axis` of the elements that are not NaN; NaN where all are.

    >>> nanmedian(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1.5, dtype=float32)
    """
    refuse_out("nanmedian", out)
    a = as_operand("nanmedian", a)
    if not _has_nans(a):
        return median(a, axis, keepdims=keepdims)
    x, axes, _ = flat_rows("nanmedian", a, axis)
    middle = _median_of_numbers(x)
    return expand_dims(middle, axes) if keepdims else middle


@composite(static=("axis", "keepdims"))
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the largest element along `axis` that is not NaN; -1 where all are.

    >>> nanargmax(jnp.array([jnp.nan, 3.0, 2.0]))
    Array(1, dtype=int32)
    """
    found = argmax(_replaced("nanargmax", a, lowest), axis, out, keepdims)
    return _minus_one_where_all_are("nanargmax", a, found, axis, keepdims)


@composite(static=("axis", "keepdims"))
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the smallest element along `axis` that is not NaN; -1 where all are.

    >>> nanargmin(jnp.array([jnp.nan, 3.0, 2.0]))
    Array(2, dtype=int32)
    """
    found = argmin(_replaced("nanargmin", a, highest), axis, out, keepdims)
    return _minus_one_where_all_are("nanargmin", a, found, axis, keepdims)


# --- helpers


@custom_jvp
def _median_of_numbers(x: Any) -> Any:
    """The median of the elements of each row that are not NaN."""
    (ordered,) = _sorted_rows(x)
    return _halfway(ordered, _middle(ordered))


@_median_of_numbers.defjvp
def _(primals: Any, tangents: Any) -> Any:
    """Two elements of a row have a derivative, where that of a sort would move all."""
    (x,), (tangent,) = primals, tangents
    shape = aval_of(x).shape
    ordered, order = _sorted_rows(x, iota_p.bind(dtype=np.dtype(np.int32), shape=shape, dimension=len(shape) - 1))
    places = _middle(ordered)
    low, high = (one_of_each_row(tangent, one_of_each_row(order, i)) for i in places)
    return _halfway(ordered, places), mul(add(low, high), literal(0.5, aval_of(low).dtype))


def _sorted_rows(x: Any, *others: Any) -> Any:
    """Rows in ascending order, NaNs last, and others in the order of these."""
    return sort_p.bind(x, *others, dimension=aval_of(x).ndim - 1, is_stable=True, num_keys=1)


def _middle(ordered: Any) -> list[Any]:
    """The two indices in the middle of the numbers of each row; they are equal where the count is odd."""
    count = reduce("nanmedian", SUM, convert(eq(ordered, ordered), np.int32), -1)
    one = literal(1, np.int32)
    last = clamp(literal(0, np.int32), sub(count, one), literal(aval_of(ordered).shape[-1] - 1, np.int32))
    return [shift_right_arithmetic(i, one) for i in (last, add(last, one))]


def _halfway(x: Any, places: Any) -> Any:
    low, high = (one_of_each_row(x, i) for i in places)
    return between(low, high, full(aval_of(low), 0.5))


def _has_nans(a: Any) -> bool:
    return issubdtype(aval_of(a).dtype, np.inexact)


def _replaced(name: str, a: Any, harmless: Any) -> Any:
    """The array with NaNs replaced by `harmless(dtype)`."""
    a = as_operand(name, a)
    dtype = aval_of(a).dtype
    return select(ne(a, a), literal(harmless(dtype), dtype), a) if _has_nans(a) else a


def _numbers(name: str, a: Any, where: Any) -> Any:
    """A mask of the elements that are not NaN and selected by `where`."""
    a = as_operand(name, a)
    mask = eq(a, a)
    return mask if where is None else bitwise_and(*broadcasted_freely(name, mask, as_mask(name, where)))


def _all_nan(name: str, a: Any, axis: Axis, keepdims: bool) -> Any:
    return reduce(name, AND, ne(a, a), axis, keepdims)


def _nan_where_all_are(name: str, a: Any, found: Any, axis: Axis, keepdims: bool) -> Any:
    a = as_operand(name, a)
    if not _has_nans(a):
        return found
    return select(_all_nan(name, a, axis, keepdims), literal(np.nan, aval_of(a).dtype), found)


def _minus_one_where_all_are(name: str, a: Any, found: Any, axis: int | None, keepdims: bool | None) -> Any:
    a = as_operand(name, a)
    if not _has_nans(a):
        return found
    return select(_all_nan(name, a, axis, bool(keepdims)), literal(-1, aval_of(found).dtype), found)
