"""Sums, products, extrema and truth over axes: one shared implementation, and the parameters of each function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from xlamini.core import Primitive, aval_of, canonicalize_dtype, check_user_dtype, issubdtype, literal
from xlamini.numpy.arguments import as_operand, as_reduced, refuse_out
from xlamini.primitives import (
    bitwise_and,
    bitwise_or,
    broadcasted_freely,
    cast,
    convert,
    expand_dims,
    highest,
    in_dtype,
    lowest,
    mul,
    ne,
    reduce_or_p,
    where as select,
)
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.collectives.reductions import pmax, pmin, psum
from xlamini.primitives.elementwise import arithmetic
from xlamini.primitives.reductions.reductions import reduce_and_p, reduce_max_p, reduce_min_p, reduce_prod_p
from xlamini.primitives.shape.shape import reduce_sum_p
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike

Axis = int | Sequence[int] | None


class AxisReduction(NamedTuple):
    """An operation to reduce with: over axes, between two values, and the number that changes nothing."""

    over: Primitive
    between: Any
    neutral: Any
    across: Callable[[Any, Any], Any] | None = None
    """The reduction over named axes."""


SUM = AxisReduction(reduce_sum_p, arithmetic.add, lambda dtype: 0, psum)
PROD = AxisReduction(reduce_prod_p, mul, lambda dtype: 1)
MAX = AxisReduction(reduce_max_p, arithmetic.max, lowest, pmax)
MIN = AxisReduction(reduce_min_p, arithmetic.min, highest, pmin)
AND = AxisReduction(reduce_and_p, bitwise_and, lambda dtype: True)
OR = AxisReduction(reduce_or_p, bitwise_or, lambda dtype: False)


@composite(static=("axis", "dtype", "keepdims", "promote_integers"))
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum over `axis` (one, several, or None for all), of the elements where `where` holds, plus `initial`.

    Booleans and narrow integers are summed as int32 or uint32 (unless `promote_integers` is False, for integers),
    halves in float32. ValueError for an axis that the array does not have.

    >>> sum(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([3, 7], dtype=int32)
    """
    return _accumulated("sum", SUM, a, axis, dtype, out, keepdims, initial, where, promote_integers)


@composite(static=("axis", "dtype", "keepdims", "promote_integers"))
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product over `axis` (one, several, or None for all), of the elements where `where` holds, times `initial`.

    Dtypes are as in `sum`. ValueError for an axis that the array does not have.

    >>> prod(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([3, 8], dtype=int32)
    """
    return _accumulated("prod", PROD, a, axis, dtype, out, keepdims, initial, where, promote_integers)


@composite(static=("axis", "keepdims"))
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element over `axis` (one, several, or None for all); NaN if one is NaN.

    With `where`, of the elements where it holds and of `initial`, which must be given then. ValueError for an axis
    that the array does not have, and where there is no element and no `initial`.

    >>> max(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([3, 4], dtype=int32)
    """
    return _extremum("max", MAX, a, axis, out, keepdims, initial, where)


@composite(static=("axis", "keepdims"))
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element over `axis` (one, several, or None for all); NaN if one is NaN.

    With `where`, of the elements where it holds and of `initial`, which must be given then. ValueError for an axis
    that the array does not have, and where there is no element and no `initial`.

    >>> min(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([1, 3], dtype=int32)
    """
    return _extremum("min", MIN, a, axis, out, keepdims, initial, where)


amax: Final = max
amin: Final = min


@composite(static=("axis", "keepdims"))
def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The smallest and the largest element over `axis`, as by `min` and `max`.

    `initial` is one number for both, or a pair.

    >>> minmax(jnp.array([3, 9, 4]))
    (Array(3, dtype=int32), Array(9, dtype=int32))
    """
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    smallest = _extremum("minmax", MIN, a, axis, out, keepdims, low, where)
    return smallest, _extremum("minmax", MAX, a, axis, out, keepdims, high, where)


@composite(static=("axis", "keepdims"))
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest minus the smallest element over `axis`; TypeError for booleans.

    >>> ptp(jnp.array([3, 9, 4]))
    Array(6, dtype=int32)
    """
    largest = _extremum("ptp", MAX, a, axis, out, keepdims, None, None)
    return arithmetic.sub(largest, _extremum("ptp", MIN, a, axis, out, keepdims, None, None))


@composite(static=("axis", "keepdims"))
def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Test whether all elements over `axis` are true (not zero); True for none.

    >>> all(jnp.array([[1, 0], [1, 1]]), axis=0)
    Array([ True, False], dtype=bool)
    """
    return _truth("all", AND, a, axis, out, keepdims, where)


@composite(static=("axis", "keepdims"))
def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Test whether some element over `axis` is true (not zero); False for none.

    >>> any(jnp.array([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _truth("any", OR, a, axis, out, keepdims, where)


@composite(static=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements over `axis` that are not zero.

    >>> count_nonzero(jnp.array([0, 3, 0, 5]))
    Array(2, dtype=int32)
    """
    counted = convert(nonzero_mask("count_nonzero", a), canonicalize_dtype(int))
    return reduce("count_nonzero", SUM, counted, axis, keepdims)


# --- the recipe, also for the statistics and the functions that pass over NaNs


def reduce(
    name: str, monoid: AxisReduction, x: Any, axis: Axis, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Reduce in the array's own dtype; over named axes too, if the operation has a collective."""
    dtype = aval_of(x).dtype
    if where is not None:
        mask, x = broadcasted_freely(name, as_mask(name, where), x)
        x = select(mask, x, literal(monoid.neutral(dtype), dtype))
    axes, names = as_reduced(name, axis, aval_of(x).ndim)
    result = monoid.over.bind(x, axes=axes)
    if names:
        result = _across(name, monoid, result, names)
    result = expand_dims(result, axes) if keepdims else result
    if initial is None:
        return result
    start = in_dtype(as_operand(name, initial) if aval_of(initial).ndim else initial, dtype)
    return monoid.between(*broadcasted_freely(name, result, start))


def _across(name: str, monoid: AxisReduction, x: Any, names: tuple[Any, ...]) -> Any:
    if monoid.across is None:
        raise NotImplementedError(f"{name}: a named axis, {names[0]!r}, is reduced by sums and extrema alone")
    return monoid.across(x, names)


def summed_dtype(name: str, given: Any, dtype: Any, promote_integers: bool = True) -> Any:
    """The dtype of a sum: the one asked for, or the elements' with small integers widened."""
    if dtype is not None:
        return check_user_dtype(dtype, name)
    if given == np.bool_:
        return canonicalize_dtype(int)
    default = canonicalize_dtype(np.uint64 if issubdtype(given, np.unsignedinteger) else int)
    widens = promote_integers and issubdtype(given, np.integer) and given.itemsize < default.itemsize
    return default if widens else given


def as_mask(name: str, where: Any) -> Any:
    """The `where` argument, which must be boolean."""
    if aval_of(where).dtype != np.bool_:
        raise ValueError(f"{name}: `where` must be boolean, got {aval_of(where).dtype}; compare it with another")
    return as_operand(name, where)


def nonzero_mask(name: str, a: Any) -> Any:
    """A mask of the nonzero elements."""
    a = as_operand(name, a)
    dtype = aval_of(a).dtype
    return a if dtype == np.bool_ else ne(a, literal(0, dtype))


def _accumulated(
    name: str,
    monoid: AxisReduction,
    a: Any,
    axis: Axis,
    dtype: Any,
    out: None,
    keepdims: bool,
    initial: Any,
    where: Any,
    promote_integers: bool,
) -> Any:
    refuse_out(name, out)
    a = as_operand(name, a)
    result = summed_dtype(name, aval_of(a).dtype, dtype, promote_integers)
    x = convert(a, accumulator(result))
    monoid = AND if monoid is PROD and result == np.bool_ else monoid
    return convert(reduce(name, monoid, x, axis, keepdims, initial, where), result)


def _extremum(
    name: str, monoid: AxisReduction, a: Any, axis: Axis, out: None, keepdims: bool, initial: Any, where: Any
) -> Any:
    refuse_out(name, out)
    a = as_operand(name, a)
    aval = aval_of(a)
    axes = as_reduced(name, axis, aval.ndim).dims
    if initial is None and where is not None:
        raise ValueError(f"{name}: `where` may leave no element, so give `initial` too, such as initial=-jnp.inf")
    empty = [d for d in axes if not aval.shape[d]]
    if initial is None and empty:
        raise ValueError(
            f"{name}: axis {empty[0]} of shape {aval.shape} is empty and no elements have no {name}; give `initial`"
        )
    return reduce(name, monoid, convert(a, aval.dtype), axis, keepdims, initial, where)


def _truth(name: str, monoid: AxisReduction, a: Any, axis: Axis, out: None, keepdims: bool, where: Any) -> Any:
    refuse_out(name, out)
    a = as_operand(name, a)
    truth = a if aval_of(a).dtype == np.bool_ else cast(a, np.dtype(bool))
    return reduce(name, monoid, truth, axis, keepdims, None, where)
