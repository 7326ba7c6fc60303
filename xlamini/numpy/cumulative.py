"""Running sums and products along an axis of an array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import aval_of, canonicalize_dtype, check_user_dtype, issubdtype, literal
from xlamini.numpy.arguments import as_axis, as_operand, refuse_out
from xlamini.numpy.reductions import summed_dtype
from xlamini.primitives import convert, ne, reshape, where as select
from xlamini.primitives.reductions.cumulative import Cumulative, cumprod_p, cumsum_p
from xlamini.primitives.shape.pad import pad
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike


@composite(static=("axis", "dtype"))
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running sum along `axis`; of the flattened array if it is None. Booleans are summed as int32.

    ValueError for an axis that the array does not have.

    >>> cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", cumsum_p, a, axis, dtype, out)


@composite(static=("axis", "dtype"))
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running product along `axis`; of the flattened array if it is None. Booleans are multiplied as int32.

    ValueError for an axis that the array does not have.

    >>> cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", cumprod_p, a, axis, dtype, out)


@composite(static=("axis", "dtype"))
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running sum along `axis` with NaNs taken for 0.

    >>> nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float32)
    """
    return _running("nancumsum", cumsum_p, _without_nans("nancumsum", a, 0), axis, dtype, out)


@composite(static=("axis", "dtype"))
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running product along `axis` with NaNs taken for 1.

    >>> nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    return _running("nancumprod", cumprod_p, _without_nans("nancumprod", a, 1), axis, dtype, out)


@composite(static=("axis", "dtype", "include_initial"))
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """The running sum along `axis`, which may be left out for one dimension; with `include_initial` it starts at 0.

    Small integers are summed as int32 or uint32. ValueError if `axis` is None for another rank than 1.

    >>> cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", cumsum_p, 0, x, axis, dtype, include_initial)


@composite(static=("axis", "dtype", "include_initial"))
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """The running product along `axis`, which may be left out for one dimension; with `include_initial` it starts at 1.

    Small integers are multiplied as int32 or uint32. ValueError if `axis` is None for another rank than 1.

    >>> cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", cumprod_p, 1, x, axis, dtype, include_initial)


def _running(name: str, primitive: Cumulative, a: Any, axis: int | None, dtype: Any, out: None) -> Any:
    refuse_out(name, out)
    a = as_operand(name, a)
    if axis is None:
        a, axis = reshape(a, (math.prod(aval_of(a).shape),)), 0
    given = aval_of(a).dtype
    result = given if dtype is None else check_user_dtype(dtype, name)
    wide = canonicalize_dtype(int) if result == np.bool_ else result
    running = primitive.bind(convert(a, wide), axis=as_axis(name, axis, aval_of(a).ndim), reverse=False)
    return running if dtype is None else convert(running, result)


def _cumulative(
    name: str, primitive: Cumulative, start: int, x: Any, axis: int | None, dtype: Any, include_initial: bool
) -> Any:
    x = as_operand(name, x)
    ndim = aval_of(x).ndim
    if axis is None and ndim != 1:
        raise ValueError(f"{name}: `axis` may be left out for one dimension only, but x has {ndim}; give axis=0, say")
    axis = as_axis(name, axis or 0, ndim)
    result = _running(name, primitive, x, axis, summed_dtype(name, aval_of(x).dtype, dtype), None)
    if not include_initial:
        return result
    config = [(int(d == axis), 0, 0) for d in range(ndim)]
    return pad(result, literal(start, aval_of(result).dtype), config)


def _without_nans(name: str, a: Any, harmless: int) -> Any:
    a = as_operand(name, a)
    dtype = aval_of(a).dtype
    return select(ne(a, a), literal(harmless, dtype), a) if issubdtype(dtype, np.inexact) else a
