"""Arrays that count: arange, linspace and its relatives, indices."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import (
    ShapedArray,
    Tracer,
    aval_of,
    canonicalize_dtype,
    check_user_dtype,
    finfo,
    iinfo,
    issubdtype,
    literal,
    result_type,
)
from xlamini.core.sizes.expression import SymbolicSize, as_size, is_less, is_symbolic_shape, max_size
from xlamini.core.sizes.shapes import broadcast_shapes, count_between
from xlamini.core.tracing.state import state
from xlamini.numpy.arguments import as_axis, as_index, as_operand, as_shape
from xlamini.numpy.creation import zeros
from xlamini.numpy.joining import stack
from xlamini.numpy.out_placement import as_place, placed
from xlamini.numpy.shapes import moveaxis
from xlamini.primitives import (
    broadcast_in_dim,
    broadcasted_iota,
    check_operands,
    convert,
    expand_dims,
    floor,
    in_dtype,
    promoted_inexact,
    where,
)
from xlamini.primitives.base import operators
from xlamini.primitives.elementwise import arithmetic, exponential
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array, device_put_value
from xlamini.runtime.arrays.transfer_guards import unguarded
from xlamini.staging import composite
from xlamini.transforms.sharding.device_put import device_put
from xlamini.typing import ArrayLike, DTypeLike, ShapeLike


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The numbers from `start` (0 if only one bound is given) up to, not including, `stop`, in steps of `step`.

    The bounds must be concrete while tracing. The dtype is that of the bounds, if none is given. The numbers lie on
    `device`, or are split over a mesh as `out_sharding` says, a PartitionSpec or NamedSharding. Raises ValueError for
    complex bounds, ZeroDivisionError for a step of 0, OverflowError where no dtype is given
    and the integers do not fit in the one of the bounds; in a given dtype they wrap around.

    >>> arange(3), arange(1, 2, 0.5)
    (Array([0, 1, 2], dtype=int32), Array([1. , 1.5], dtype=float32))
    """
    place = as_place("arange", device, out_sharding)
    bounds = [1 if type(b) is SymbolicSize else b for b in (start, stop, step) if b is not None]
    check_operands("arange", bounds or (start,))
    wanted = result_type(*bounds) if dtype is None else check_user_dtype(dtype, "arange")
    is_integer = issubdtype(wanted, np.integer)
    if not issubdtype(wanted, np.number) or issubdtype(result_type(*bounds), np.complexfloating):
        raise ValueError(f"arange: dtype {wanted} cannot count; ask for integers or floats with `dtype`")
    low, high, by = _bounds(start, stop, step)
    length = _count(low, high, by)
    if is_integer and dtype is None:
        _check_fit(low, low + max_size(length - 1, 0) * by, wanted)
    return _counted(low, by, length, wanted, place)


def _count(low: Any, high: Any, by: Any) -> int:
    if is_symbolic_shape((low, high)):
        return count_between(*map(_whole, (low, high, by)))
    return max(0, math.ceil((high - low) / by))


def _whole(bound: Any) -> Any:
    """A bound beside a symbolic one, which must be whole; TypeError for another."""
    if isinstance(bound, float) and not bound.is_integer():
        raise TypeError(f"arange: a range up to a symbolic size takes whole bounds and steps, got {bound}")
    return bound if type(bound) is SymbolicSize else int(bound)


def _bounds(start: Any, stop: Any, step: Any) -> tuple[Any, Any, Any]:
    first, last = (0, start) if stop is None and step is None else (start, stop)
    if last is None:
        first, last = 0, start
    bounds = tuple(_concrete(b) for b in (first, last, 1 if step is None else step))
    if bounds[2] == 0:
        raise ZeroDivisionError("arange: step must not be 0; linspace takes a number of elements")
    return bounds  # type: ignore[return-value]


def _concrete(bound: Any) -> Any:
    """A bound as a Python number; that of an abstract tracer raises an error."""
    if isinstance(bound, Tracer):
        traced: Any = bound
        return operator.index(traced) if issubdtype(bound.dtype, np.integer) else float(traced)
    return bound if isinstance(bound, int | float | SymbolicSize) else np.asarray(bound).item()


def _check_fit(first: Any, last: Any, dtype: Any) -> None:
    """OverflowError unless the first and the last of the integers fit in the dtype."""
    limits = iinfo(dtype)
    for end in first, last:
        if not limits.min <= end <= limits.max:
            raise OverflowError(f"arange: {end} does not fit in {dtype}; give a wider dtype (see enable_x64)")


def _counted(start: Any, step: Any, length: int, dtype: Any, place: Any) -> Any:
    if is_symbolic_shape((start, length)):
        return placed(_progression(start, step, length, dtype), place)
    if state.builder is not None and ((start, step) == (0, 1) or _is_exact(start, step, length, dtype)):
        return placed(_progression(start, step, length, dtype), place)
    values = (start + np.arange(length) * step if length else np.zeros(0)).astype(dtype)
    aval = ShapedArray(values.shape, dtype)
    with unguarded():
        if state.builder is None:
            return device_put_value(values, place, aval=aval)
        return placed(device_put_value(values, aval=aval), place)


def _is_exact(start: Any, step: Any, length: int, dtype: Any) -> bool:
    """Whether the numbers, and the products that they are made of, are whole and the dtype has all of them."""
    if start != int(start) or step != int(step):
        return False
    limit = iinfo(dtype).max if issubdtype(dtype, np.integer) else 2 ** (finfo(dtype).nmant + 1)
    numbers = start, step, max(0, length - 1) * step, start + max(0, length - 1) * step
    lowest = 0 if issubdtype(dtype, np.unsignedinteger) else -limit
    return all(lowest <= x <= limit for x in numbers)


def _progression(start: Any, step: Any, length: int, dtype: Any) -> Any:
    """An operation of the program, which a compiler knows, unlike an array that the program would be given."""
    numbers = iota(dtype, length)
    if step != 1:
        numbers = arithmetic.mul(numbers, literal(int(step), dtype))
    first = start if type(start) is SymbolicSize else int(start)
    return numbers if start == 0 else arithmetic.add(numbers, literal(first, dtype))


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`, or up to before it without `endpoint`, along a new axis.

    With `retstep` also the distance between two. ValueError for a negative `num`.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    count = as_size(num)
    if count < 0:
        raise ValueError(f"linspace: num must be 0 or more, got {count}")
    wanted = None if dtype is None else check_user_dtype(dtype, "linspace")
    points, step = _linspace(start, stop, count, endpoint, wanted, axis)
    points = points if device is None else device_put(points, device)
    return (points, step) if retstep else points


@composite(static=("num", "endpoint", "dtype", "axis"))
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    start, stop = _ends("linspace", start, stop)
    kind = aval_of(start).dtype
    parts = num - 1 if endpoint else num
    if is_symbolic_shape((parts,)):
        step = where(literal(parts, np.int32) > 0, (stop - start) / parts, math.nan)
    else:
        step = (stop - start) / parts if parts > 0 else start * math.nan
    along = as_axis("linspace", axis, aval_of(start).ndim + 1)
    points = _interpolated(start, stop, num, parts, endpoint)
    if dtype is not None and issubdtype(dtype, np.integer):
        points = floor(points)
    return convert(moveaxis(points, 0, along), kind if dtype is None else dtype), convert(step, kind)


def _ends(name: str, start: Any, stop: Any) -> tuple[Any, Any]:
    """Both ends of a range in one float dtype and one shape."""
    start, stop = promoted_inexact(name, start, stop)
    shape = broadcast_shapes(aval_of(start).shape, aval_of(stop).shape)
    dtype = aval_of(start).dtype
    return tuple(_in_shape(in_dtype(x, dtype), shape) for x in (start, stop))  # type: ignore[return-value]


def _in_shape(x: Any, shape: tuple[int, ...]) -> Any:
    return x if aval_of(x).shape == shape else broadcast_in_dim(x, shape, ())


def _interpolated(start: Any, stop: Any, num: int, parts: int, endpoint: bool) -> Any:
    """The points along axis 0. The last one is `stop` itself, which a sum would miss by rounding."""
    inner = num - 1 if endpoint else num
    first, last = expand_dims(start, (0,)), expand_dims(stop, (0,))
    if is_symbolic_shape((num,)):
        points = _weighted(first, last, num, max_size(parts, 1))
        at_end = expand_dims(iota(np.int32, num), range(1, aval_of(first).ndim))
        return where((at_end == parts) & (at_end > 0), last, points) if endpoint else points
    if num < 2:
        return broadcast_in_dim(first, (num, *aval_of(start).shape), range(aval_of(first).ndim))
    points = _weighted(first, last, inner, parts)
    return concatenate([points, last], 0) if endpoint else points


def _weighted(first: Any, last: Any, count: int, parts: int) -> Any:
    """So many points from the first on, each a part further to the last."""
    dtype = aval_of(first).dtype
    share = iota(np.dtype("float32") if issubdtype(dtype, np.complexfloating) else dtype, count) / parts
    share = convert(expand_dims(share, range(1, aval_of(first).ndim)), dtype)
    return operators.add(operators.multiply(first, 1 - share), operators.multiply(last, share))


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` powers of `base`, with evenly spaced exponents from `start` to `stop`.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    wanted = None if dtype is None else check_user_dtype(dtype, "logspace")
    return _logspace(start, stop, as_index("logspace", "num", num), endpoint, base, wanted, axis)


@composite(static=("num", "endpoint", "dtype", "axis"))
def _logspace(start: Any, stop: Any, num: int, endpoint: bool, base: Any, dtype: Any, axis: int) -> Any:
    (base,) = check_operands("logspace", (base,))  # a number stays one, of which the compiler knows the logarithm
    powers = operators.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return powers if dtype is None else convert(powers, dtype)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before, along a new axis.

    Both ends may be negative, or complex, but not 0, and reals not of two signs: that gives NaN.

    >>> geomspace(1, 8, 4).round(3)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    count = as_index("geomspace", "num", num)
    if count < 0:
        raise ValueError(f"geomspace: num must be 0 or more, got {count}")
    wanted = None if dtype is None else check_user_dtype(dtype, "geomspace")
    return _geomspace(start, stop, count, endpoint, wanted, axis)


@composite(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    start, stop = _ends("geomspace", start, stop)
    sign = arithmetic.sign(start)
    along = as_axis("geomspace", axis, aval_of(start).ndim + 1)
    low, high = exponential.log(start / sign), exponential.log(stop / sign)
    inner = linspace(low, high, num, endpoint)[1 : num - 1 if endpoint else num]
    inner = exponential.exp(inner) * sign
    several = not is_less(num, 2)
    first = _exact(start, exponential.exp(low + 0 * high if several else low) * sign)
    last = [_exact(stop, exponential.exp(high) * sign)] if endpoint and several else []
    points = concatenate([first, inner, *last], 0)[:num]
    points = moveaxis(points, 0, along)
    return points if dtype is None else convert(points, dtype)


def _exact(end: Any, rounded: Any) -> Any:
    """An end itself along a new axis, which its exponential misses by rounding; NaN where that is NaN."""
    return expand_dims(where(operators.equal(rounded, rounded), end, rounded), (0,))


def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The index along each axis, of every element of an array of this shape: stacked, or `sparse` ones that broadcast.

    >>> indices((2, 2))[1]
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    shape = as_shape("indices", dimensions)
    wanted = canonicalize_dtype(int) if dtype is None else check_user_dtype(dtype, "indices")
    each = tuple(broadcasted_iota(wanted, _thinned(shape, axis, sparse), axis) for axis in range(len(shape)))
    if sparse:
        return each
    return stack(each) if each else zeros(0, wanted)


def _thinned(shape: Sequence[int], axis: int, sparse: bool) -> tuple[int, ...]:
    """The shape with length 1 in the other axes, if `sparse`."""
    return tuple(n if not sparse or d == axis else 1 for d, n in enumerate(shape))


def fromfunction(
    function: Callable[..., Any], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """`function` of the indices of each element of an array of this shape.

    >>> fromfunction(lambda i, j: i + j, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    sizes, wanted = as_shape("fromfunction", shape), check_user_dtype(dtype, "fromfunction")
    return function(*(broadcasted_iota(wanted, sizes, axis) for axis in range(len(sizes))), **kwargs)


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """The coordinates of a grid: one array for each axis, from the places along it.

    Indexing "xy" makes the first array vary along the second axis, "ij" along the first. With `sparse` each array is
    as thin as it can be. ValueError for places that are not one-dimensional.

    >>> meshgrid(arange(2), arange(3))[0].shape
    (3, 2)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing={indexing!r}; it takes 'xy' or 'ij'")
    places = [as_operand("meshgrid", x) for x in xi]
    if any(x.ndim > 1 for x in places):
        raise ValueError(f"meshgrid: the places must be one-dimensional, got shapes {[x.shape for x in places]}")
    axes = list(range(len(places)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    lengths = [x.size for x in places]
    shape = [lengths[axes[d]] for d in range(len(axes))]
    return [_along_axis(x, axis, shape, sparse) for x, axis in zip(places, axes, strict=True)]


def _along_axis(x: Any, axis: int, shape: Sequence[int], sparse: bool) -> Any:
    return broadcast_in_dim(x, _thinned(shape, axis, sparse), (axis,) if x.ndim else ())
