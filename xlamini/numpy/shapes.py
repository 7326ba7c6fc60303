"""Other shapes for the same elements, and the order of axes."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from xlamini.core import ShapeError
from xlamini.core.program.avals import is_several
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.tracing.host_arrays import as_ndarray
from xlamini.numpy.arguments import as_axes, as_axis, as_index, as_operand
from xlamini.primitives import in_sharding, is_operand
from xlamini.primitives.shape import shape as _shape
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, AxisLike, ShapeLike


def reshape(
    a: ArrayLike, shape: ShapeLike, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The elements of `a` in another shape; one size may be -1, which follows from the others.

    They are read and written in row-major order, or with order "F" in column-major order. `out_sharding`, a
    PartitionSpec or NamedSharding, says how the result is split over a mesh. As in JAX, a NumPy array stays one, which
    Python may read in a traced function; it is a copy. ShapeError where the sizes don't fit.

    >>> reshape(xlamini.numpy.arange(6), (2, -1)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, reshape, a, shape, order)
    stays = isinstance(a, np.ndarray) and is_operand(a)
    x: Any = as_ndarray(a) if stays else as_operand("reshape", a)
    sizes = _resolved(x.shape, shape)
    return x.reshape(sizes, order=order).copy() if stays else _reshape(x, sizes, order)


def _reshape(x: Any, sizes: tuple[int, ...], order: str) -> Array:
    if order == "C":
        return _shape.reshape(x, sizes)
    if order != "F":
        raise NotImplementedError(f"reshape: order={order!r}; it takes 'C' or 'F'")
    return _reshape_by_columns(x, sizes)


@composite(static=("sizes",))
def _reshape_by_columns(a: Any, sizes: tuple[int, ...]) -> Any:
    return transpose(_shape.reshape(transpose(a), sizes[::-1]))


def _resolved(own: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    given: Any = shape
    if isinstance(shape, str | SymbolicSize) or not (isinstance(shape, Sequence) or np.ndim(shape)):
        given = (shape,)
    sizes = tuple(as_index("reshape", "a size", n) for n in given)
    total = math.prod(own)
    unknown = [i for i, n in enumerate(sizes) if n == -1]
    if len(unknown) > 1:
        raise ShapeError(f"reshape: only one size can follow from the others, but {sizes} has {len(unknown)} of -1")
    if unknown:
        known = -math.prod(sizes)
        if known <= 0 or total % known:
            raise ShapeError(_misfit(own, total, sizes, f"a multiple of {_count(known)}"))
        return tuple(total // known if n == -1 else n for n in sizes)
    if math.prod(sizes) != total:
        raise ShapeError(_misfit(own, total, sizes, _count(math.prod(sizes))))
    return sizes


def _misfit(own: tuple[int, ...], total: int, sizes: tuple[int, ...], needed: str) -> str:
    return (
        f"reshape: cannot reshape array of shape {own}, which has {total} elements, into shape {_brief(sizes)}, which "
        f"needs {needed}; give sizes with the same product, or one of -1"
    )


def _count(number: int) -> str:
    return str(number) if number.bit_length() <= 128 else f"a number of {number.bit_length()} bits"


def _brief(sizes: tuple[int, ...]) -> str:
    """A shape; of one that no array has, the first sizes and how many there are."""
    return str(sizes) if len(sizes) <= 32 else f"({', '.join(map(str, sizes[:8]))}, ... {len(sizes)} sizes in all)"


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements of `a` in one dimension; in row-major order, or with order "F" in column-major order.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, ravel, a, order)
    x = as_operand("ravel", a)
    return _reshape(x, (math.prod(x.shape),), order)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The axes of `a` in another order: that of `axes`, or the reverse one.

    >>> transpose(xlamini.numpy.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = as_operand("transpose", a)
    ndim = x.ndim
    if axes is None:
        return _shape.transpose(x, range(ndim)[::-1])
    order = as_axes("transpose", axes, ndim)
    if len(order) != ndim:
        raise ShapeError(f"transpose: axes {tuple(axes)} do not name each axis of shape {x.shape} once")
    return _shape.transpose(x, order)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The axes of `a` in the order of `axes`.

    >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two axes exchanged; ValueError for fewer than two dimensions.

    >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    array = as_operand("matrix_transpose", x)
    if array.ndim < 2:
        raise ValueError(f"matrix_transpose: at least two dimensions are needed, got shape {array.shape}")
    return swapaxes(array, -1, -2)


@composite(static=("axis1", "axis2"))
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two axes exchanged.

    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_operand("swapaxes", a)
    order = list(range(x.ndim))
    i, j = as_axis("swapaxes", axis1, x.ndim), as_axis("swapaxes", axis2, x.ndim)
    order[i], order[j] = order[j], order[i]
    return _shape.transpose(x, order)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Axes moved to other places; the others keep their order.

    >>> moveaxis(xlamini.numpy.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_operand("moveaxis", a)
    sources, places = as_axes("moveaxis", source, x.ndim), as_axes("moveaxis", destination, x.ndim)
    if len(sources) != len(places):
        raise ValueError(f"moveaxis: source {source} and destination {destination} must name equally many axes")
    order = [d for d in range(x.ndim) if d not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return _shape.transpose(x, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move one axis to the position before axis `start`.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_operand("rollaxis", a)
    source = as_axis("rollaxis", axis, x.ndim)
    place = start if start == x.ndim else as_axis("rollaxis", start, x.ndim)
    return moveaxis(x, source, place - (source < place))


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Insert axes of length 1, which become `axis` of the result.

    >>> expand_dims(xlamini.numpy.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = as_operand("expand_dims", a)
    if axis is None:
        raise TypeError("expand_dims: axis must be an integer or several, got None")
    count = len(axis) if is_several(axis) else 1  # type: ignore[arg-type]
    return _shape.expand_dims(x, as_axes("expand_dims", axis, x.ndim + count))


def squeeze(a: ArrayLike, axis: AxisLike = None) -> Array:
    """Axes of length 1 taken out: those named, or all. ShapeError for a longer one.

    >>> squeeze(xlamini.numpy.ones((1, 3, 1)), 0).shape
    (3, 1)
    """
    x = as_operand("squeeze", a)
    shape = x.shape
    if axis is None:
        return _shape.squeeze(x, [d for d, n in enumerate(shape) if n == 1])
    axes = as_axes("squeeze", axis, x.ndim)
    long = [d for d in axes if shape[d] != 1]
    if long:
        raise ShapeError(f"squeeze: axis {long[0]} of shape {shape} has length {shape[long[0]]}, not 1")
    return _shape.squeeze(x, axes)


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(first: ArrayLike, second: ArrayLike, /, *rest: ArrayLike) -> list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Each array with at least one dimension.

    >>> atleast_1d(3.0)
    Array([3.], dtype=float32, weak_type=True)
    >>> [x.shape for x in atleast_1d(3.0, jnp.ones((2, 2)))]
    [(1,), (2, 2)]
    """
    return _each(_at_least_1d, arys)


@composite()
def _at_least_1d(x: Any) -> Any:
    x = as_operand("atleast_1d", x)
    return _shape.reshape(x, (1,)) if x.ndim == 0 else x


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(first: ArrayLike, second: ArrayLike, /, *rest: ArrayLike) -> list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Each array with at least two dimensions; new ones come first.

    >>> atleast_2d(jnp.array([1, 2]))
    Array([[1, 2]], dtype=int32)
    """
    return _each(_at_least_2d, arys)


@composite()
def _at_least_2d(x: Any) -> Any:
    x = as_operand("atleast_2d", x)
    return _shape.reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(first: ArrayLike, second: ArrayLike, /, *rest: ArrayLike) -> list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Each array with at least three dimensions: `n` becomes `(1, n, 1)`, `(m, n)` becomes `(m, n, 1)`.

    >>> atleast_3d(jnp.ones(2)).shape, atleast_3d(jnp.ones((2, 4))).shape
    ((1, 2, 1), (2, 4, 1))
    """
    return _each(_at_least_3d, arys)


@composite()
def _at_least_3d(x: Any) -> Any:
    x = as_operand("atleast_3d", x)
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _shape.expand_dims(x, new[x.ndim]) if x.ndim < 3 else x


def _each(change: Callable[[Any], Any], arrays: Sequence[Any]) -> Any:
    changed = list(map(change, arrays))
    return changed[0] if len(changed) == 1 else changed


def shape(a: Any) -> tuple[int, ...]:
    """The length of each axis.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    return tuple(a.shape) if hasattr(a, "shape") else np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes.

    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    return len(shape(a))


def isscalar(element: Any) -> bool:
    """Test whether a value has no dimensions: a number, text, or an array of rank 0.

    >>> isscalar(3.5), isscalar(jnp.arange(2))
    (True, False)
    """
    return np.isscalar(element) or (is_operand(element) and not np.ndim(element))


def iterable(y: Any) -> bool:
    """Test whether a value can be iterated over; an array of rank 0 cannot.

    >>> iterable(jnp.arange(2)), iterable(3)
    (True, False)
    """
    return y.ndim > 0 if isinstance(y, Array) else np.iterable(y)  # without slicing it


def size(a: Any, axis: AxisLike = None) -> int:
    """The number of elements, in all or along some axes.

    >>> jnp.size(jnp.ones((2, 3)))
    6
    """
    lengths = shape(a)
    return math.prod(lengths[d] for d in as_axes("size", axis, len(lengths)))
