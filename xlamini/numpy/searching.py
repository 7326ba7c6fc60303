"""Searching and counting values: nonzero, searchsorted, digitize, bincount."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import (
    ConcretizationTypeError,
    ShapeError,
    Tracer,
    TracerArrayConversionError,
    aval_of,
    canonicalize_dtype,
)
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.core.tracing.concretization import values_for_a_shape
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.arithmetic import maximum
from xlamini.numpy.creation import full, zeros
from xlamini.primitives import (
    BOOL,
    INTEGER,
    broadcast_in_dim,
    broadcasted_iota,
    check_operands,
    convert,
    in_dtype,
    in_sharding,
    kind_of,
    promoted_dtypes,
    reshape,
    rev,
    where,
)
from xlamini.primitives.base import operators
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.reductions.cumulative import cumsum
from xlamini.runtime import Array, device_put_value
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")
_INDEX = np.dtype("int32")


# --- elements that differ from 0


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that differ from 0, one array for each axis, in row-major order.

    How many there are depends on the values, so inside a traced function `size` must say how many are returned:
    indices beyond are dropped, missing ones are `fill_value` (0 if not given; one for all axes, or one for each).

    >>> nonzero(xlamini.numpy.array([0, 3, 0, 5]))
    (Array([1, 3], dtype=int32),)
    """
    x = as_operand("nonzero", a)
    if x.ndim == 0:
        raise ValueError("nonzero: at least one dimension is needed, got a scalar; use atleast_1d")
    if size is not None:
        _check_counts(_INDEX, x.size, "search it in parts")
        fills = tuple(fill_value) if np.ndim(fill_value) else (0 if fill_value is None else fill_value,) * x.ndim
        return _nonzero(x, size, fills)
    index = canonicalize_dtype(int)
    _check_counts(index, max(x.shape), "turn on enable_x64")
    return tuple(device_put_value(i.astype(index)) for i in np.nonzero(concrete_values("nonzero", x)))


def _check_counts(index: np.dtype, size: int, fix: str) -> None:
    """Raise OverflowError where indices of this dtype would wrap around."""
    if size > np.iinfo(index).max:
        raise OverflowError(f"nonzero: {size} elements are more than {index} can count; {fix}")


def concrete_values(name: str, x: Any, advice: str = "give it with the argument `size`") -> np.ndarray:
    """The concrete values of an array; an error with some advice where it is traced."""
    if type(x) is not Tracer:
        return np.asarray(x)
    try:
        return values_for_a_shape(x)
    except TracerArrayConversionError as error:
        raise ConcretizationTypeError(
            f"{name}: the length of the result depends on values that are not known while tracing; {advice}. {error}"
        ) from None


@composite(static=("size", "fills"))
def _nonzero(x: Any, size: int, fills: tuple[Any, ...]) -> tuple[Any, ...]:
    if not size:
        return tuple(zeros(0, _INDEX) for _ in fills)
    found = reshape(convert(x, np.dtype(bool)), (x.size,))
    rank = cumsum(convert(found, _INDEX)) - 1
    slots = where(found, rank, in_dtype(size, _INDEX))  # the others fall off the end
    indices = []
    for axis, fill in enumerate(fills):
        values = reshape(broadcasted_iota(_INDEX, x.shape, axis), (x.size,))
        indices.append(full(size, fill, _INDEX).at[slots].set(values, mode="drop"))
    return tuple(indices)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that differ from 0 in `a` flattened; see `nonzero`.

    >>> jnp.flatnonzero(jnp.array([0, 3, 5]))
    Array([1, 2], dtype=int32)
    """
    x = as_operand("flatnonzero", a)
    return nonzero(reshape(x, (x.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that differ from 0, one row for each of them; see `nonzero`.

    >>> jnp.argwhere(jnp.array([0, 3, 5]))
    Array([[1],
           [2]], dtype=int32)
    """
    x = as_operand("argwhere", a)
    if x.ndim == 0:
        return argwhere(x.reshape(1), size=size, fill_value=fill_value)[:, :0]
    found = nonzero(x, size=size, fill_value=fill_value)
    return _columns(list(found))


@composite()
def _columns(columns: list[Any]) -> Any:
    shape = (columns[0].shape[0], len(columns))
    which = broadcasted_iota(_INDEX, shape, 1)
    table = full(shape, 0, columns[0].dtype)
    for number, column in enumerate(columns):
        table = where(operators.equal(which, number), broadcast_in_dim(column, shape, (0,)), table)
    return table


# --- places in a sorted array


@composite(static=("side", "method"))
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """The insertion indices of the elements of `v` that keep the sorted `a` sorted; NaN belongs at the end.

    With side "left" before elements that are equal, with "right" after them. `sorter` has the indices that sort `a`.
    All methods give the same; the search is binary. ValueError where `a` is not one-dimensional.

    >>> searchsorted(xlamini.numpy.array([1, 2, 3]), 2)
    Array(1, dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side={side!r}; it takes 'left' or 'right'")
    _check_method("searchsorted", method)
    a, v = check_operands("searchsorted", (a, v))
    table, values = promoted_dtypes(a, v)
    if aval_of(table).ndim != 1:
        raise ValueError(f"searchsorted: `a` must be one-dimensional, got shape {aval_of(table).shape}")
    if sorter is not None:
        table = table[as_operand("searchsorted", sorter)]
    return places(table, values, side)


def _check_method(name: str, method: Any) -> None:
    if not isinstance(method, str) or method not in _METHODS:
        raise ValueError(f"{name}: method={method!r}; it takes {', '.join(map(repr, _METHODS))}")


def places(table: Any, values: Any, side: str) -> Any:
    """The number of elements before each value, by binary search from the highest bit."""
    table = as_operand("searchsorted", table)
    length = aval_of(table).shape[0]
    count = full(aval_of(values).shape, 0, _INDEX)
    for bit in reversed(range(_bits(length))):
        tried = count + (1 << bit)
        last = table.at[tried - 1].get(mode="clip")
        before = _precedes(last, values) if side == "left" else operators.bitwise_not(_precedes(values, last))
        count = where(operators.bitwise_and(operators.less_equal(tried, length), before), tried, count)
    return count


def _bits(length: int) -> int:
    """The number of binary digits of a length; of a symbolic one, those that it may have."""
    if not is_symbolic_shape((length,)):
        return length.bit_length()
    size: Any = length
    greatest = size.scope.bounds(size)[1]
    return 31 if greatest is None else greatest.bit_length()


def _precedes(x: Any, y: Any) -> Any:
    """The comparator: x precedes y if it is smaller, or only y is NaN."""
    nan_last = operators.bitwise_and(operators.equal(x, x), operators.not_equal(y, y))
    return operators.bitwise_or(operators.less(x, y), nan_last)


@composite(static=("right", "method"))
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin each element falls into; bin i starts at `bins[i - 1]`, which belongs to it unless `right`.

    The bounds ascend or descend.

    >>> digitize(xlamini.numpy.array([1, 5]), xlamini.numpy.array([0, 2, 4]))
    Array([1, 3], dtype=int32)
    """
    if method is not None:
        _check_method("digitize", method)
    x, bins = check_operands("digitize", (x, bins))
    values, bounds = promoted_dtypes(x, bins)
    if aval_of(bounds).ndim != 1:
        raise ValueError(f"digitize: bins must be one-dimensional, got shape {aval_of(bounds).shape}")
    length = aval_of(bounds).shape[0]
    side = "left" if right else "right"
    up = places(bounds, values, side)
    if not length:
        return up
    down = length - places(rev(bounds, (0,)), values, side)
    return where(operators.greater_equal(bounds[-1], bounds[0]), up, down)


# --- counts and curves


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """The number of times each integer from 0 up to the largest occurs in `x`; with `weights`, their sum.

    The result is at least `minlength` long. Inside a traced function `length` must say how long; larger numbers are
    dropped. Negative ones count as 0.

    >>> bincount(xlamini.numpy.array([0, 1, 1, 3]))
    Array([1, 2, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, bincount, x, weights, minlength, length=length)
    numbers = as_operand("bincount", x)
    if kind_of(numbers.dtype) is BOOL:
        numbers = numbers.astype(int)
    if kind_of(numbers.dtype) not in INTEGER:
        raise TypeError(f"bincount: x must be of integers, got {numbers.dtype}; convert it with .astype(int)")
    if numbers.ndim != 1:
        raise ValueError(f"bincount: x must be one-dimensional, got shape {numbers.shape}; use ravel")
    if length is None:
        known = concrete_values("bincount", numbers, "give it with the argument `length`")
        length = max(minlength, int(known.max()) + 1) if known.size else minlength
    return _bincount(numbers, 1 if weights is None else weights, length)


@composite(static=("length",))
def _bincount(numbers: Any, weights: Any, length: int) -> Any:
    shape = aval_of(weights).shape
    if shape not in ((), numbers.shape):
        raise ShapeError(f"bincount: weights of shape {shape} for x of shape {numbers.shape}; give one for each")
    at = maximum(numbers, in_dtype(0, numbers.dtype))
    dtype = aval_of(weights).dtype
    wide = accumulator(dtype)
    return convert(zeros(length, wide).at[at].add(convert(weights, wide), mode="drop"), dtype)
