"""Functions that read and write elements by integer index: take, put, and their kin along an axis."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Shape, ShapeError, aval_of
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.arguments import as_axis, as_operand, as_operand_beside, refuse_out
from xlamini.numpy.indexing.operations import IndexOptions, get
from xlamini.numpy.indexing.parse import plan_of
from xlamini.numpy.indexing.plan import Rules
from xlamini.primitives import BOOL, INTEGER, broadcast_in_dim, in_dtype, kind_of, reshape, zeros
from xlamini.primitives.base.promotion import check_dtypes
from xlamini.primitives.elementwise.arithmetic import rem
from xlamini.primitives.indexing.dynamic_slice import from_front, reaching
from xlamini.primitives.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xlamini.primitives.indexing.gather_numbers import as_scatter
from xlamini.primitives.indexing.scatter import ScatterDimensionNumbers, scatter
from xlamini.runtime import Array
from xlamini.staging import composite


@composite(static=("axis", "out", "mode", "unique_indices", "indices_are_sorted", "fill_value"))
def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """The elements of `a` at integer `indices` along an axis, or, if that is None, of all of them in a row.

    `mode` sets the meaning of out-of-bounds indices: "fill", the default, gives `fill_value` (NaN, or the dtype's
    extreme), "clip" the nearest element, and negative ones are out of bounds then; "wrap" counts modulo the size.
    TypeError for other indices than integers.

    >>> jnp.take(jnp.array([4, 3, 2]), jnp.array([-1, 0]))
    Array([2, 4], dtype=int32)
    """
    refuse_out("take", out)
    a, indices = as_operand("take", a), _integers("take", indices)
    if axis is None:
        a, axis = reshape(a, (aval_of(a).size,)), 0
    axis = as_axis("take", axis, aval_of(a).ndim)
    if not aval_of(a).shape[axis] and aval_of(indices).size:
        raise IndexError(f"take: axis {axis} of shape {aval_of(a).shape} is empty, so there is nothing to take")
    known, indices = _counted("take", mode, indices, aval_of(a).shape[axis])
    options = IndexOptions(known, fill_value, indices_are_sorted, unique_indices)
    index = (slice(None),) * axis + (indices,)
    rules = Rules(eager=False, strict=False, wrap=False, clip=known is GatherScatterMode.CLIP)
    return get(a, *plan_of(index, aval_of(a).shape, rules), options)


@composite(static=("mode", "inplace"))
def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Array:
    """A copy of `a` with its elements at `ind`, counted in a row, set to those of `v`, repeated as often as needed.

    Arrays are immutable, so `inplace` must be given as False, else ValueError. Indices out of bounds are clipped, or
    as `mode` says: "wrap", "fill" or "drop" (ignored).

    >>> jnp.put(jnp.array([4, 3, 2]), jnp.array([0, 2]), 9, inplace=False)
    Array([9, 3, 9], dtype=int32)
    """
    _refuse_inplace("put", inplace)
    check_dtypes(a, v)
    a, indices = as_operand("put", a), _integers("put", ind)
    v = as_operand_beside("put", v, a)
    aval, values, count = aval_of(a), aval_of(v), aval_of(indices).size
    if not count or not values.size:
        return a
    known, indices = _counted("put", mode or "clip", from_front(indices, aval.size), aval.size)
    updates = take(v, np.arange(count) % values.size, mode="promise_in_bounds")
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    places, updates = reshape(indices, (count, 1)), in_dtype(updates, aval.dtype)
    flat = scatter(reshape(a, (aval.size,)), places, updates, numbers, mode=known)
    return in_dtype(reshape(flat, aval.shape), aval.dtype, aval.weak_type)


# --- along an axis


@composite(static=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take the element of `arr` for each index along `axis`, at the index's own position on the other axes.

    The other axes broadcast. With axis None `arr` is taken as one row. `mode` and `fill_value` as in `take`; negative
    indices count from the end unless `wrap_negative_indices` is False. ShapeError where the shapes do not fit.

    >>> x = jnp.array([[3, 1, 2], [6, 5, 4]])
    >>> jnp.take_along_axis(x, jnp.array([[1], [2]]), axis=1)
    Array([[1],
           [4]], dtype=int32)
    """
    arr, indices, axis = _operands_along("take_along_axis", arr, indices, axis)
    rows = _rows_along("take_along_axis", aval_of(arr).shape, aval_of(indices).shape, axis)
    if 0 in rows.shape:
        return zeros(aval_of(arr).update(shape=rows.shape))
    if wrap_negative_indices is not False:
        indices = from_front(indices, aval_of(arr).shape[axis])
    places, known = reshape(indices, rows.places), GatherScatterMode.from_any(mode)
    return gather(arr, places, rows.numbers, rows.slice_sizes, mode=known, fill_value=fill_value)


@composite(static=("axis", "inplace", "mode"))
def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: str | None = None
) -> Array:
    """A copy of `arr` with the elements of `take_along_axis(arr, indices, axis)` set to `values`, which broadcast.

    Arrays are immutable, so `inplace` must be given as False, else ValueError. Indices out of bounds are ignored, or
    as `mode` says.

    >>> jnp.put_along_axis(jnp.array([[3, 1], [6, 5]]), jnp.array([[1], [0]]), 9, axis=1, inplace=False)
    Array([[3, 9],
           [9, 5]], dtype=int32)
    """
    _refuse_inplace("put_along_axis", inplace)
    check_dtypes(arr, values)
    whole, values = as_operand("put_along_axis", arr), as_operand("put_along_axis", values)
    aval = aval_of(whole)
    flat, indices, axis = _operands_along("put_along_axis", whole, indices, axis)
    rows = _rows_along("put_along_axis", aval_of(flat).shape, aval_of(indices).shape, axis)
    if 0 in rows.shape:
        return whole
    places = reshape(from_front(indices, aval_of(flat).shape[axis]), rows.places)
    updates = _repeated("put_along_axis", in_dtype(values, aval.dtype), rows.shape)
    written = scatter(flat, places, updates, as_scatter(rows.numbers), mode=mode)
    return in_dtype(reshape(written, aval.shape), aval.dtype, aval.weak_type)


def _operands_along(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[Any, Any, int]:
    arr, indices = as_operand(name, arr), _integers(name, indices)
    if axis is None:
        arr, axis = reshape(arr, (aval_of(arr).size,)), 0
    given, found = aval_of(arr), aval_of(indices)
    if given.ndim != found.ndim:
        raise ShapeError(
            f"{name}: indices have shape {found.shape}, which must have as many axes as the array, whose shape is "
            f"{given.shape}; insert axes of size 1 with indices[..., None]"
        )
    return arr, indices, as_axis(name, axis, given.ndim)


class _Rows(NamedTuple):
    """What an index along an axis reads: all elements of the other axes in which the indices have size 1.

    Element by element, a TPU takes up to six times as long, and the gradient's scatter a hundred times the bytes.
    """

    shape: Shape  # of the result
    places: Shape  # of the indices, without the axes that are read whole
    slice_sizes: Shape
    numbers: GatherDimensionNumbers


def _rows_along(name: str, given: Shape, found: Shape, axis: int) -> _Rows:
    common = _common(name, given, found, axis)
    whole = tuple(d for d, n in enumerate(found) if d != axis and n == 1)
    indexed = [d for d in range(len(given)) if d not in whole]
    paired = tuple(d for d in indexed if d != axis and given[d] not in (0, 1))
    read_once = tuple(d for d in indexed if d not in paired)
    numbers = GatherDimensionNumbers(whole, read_once, (axis,), paired, tuple(map(indexed.index, paired)))
    sizes = tuple(n if d in whole else 1 for d, n in enumerate(given))
    return _Rows((*common[:axis], found[axis], *common[axis + 1 :]), (*(found[d] for d in indexed), 1), sizes, numbers)


def _common(name: str, given: tuple[int, ...], found: tuple[int, ...], axis: int) -> tuple[int, ...]:
    others = [(*shape[:axis], 1, *shape[axis + 1 :]) for shape in (given, found)]
    try:
        return broadcast_shapes(*others)
    except ValueError:
        raise ShapeError(
            f"{name}: array of shape {given} and indices of shape {found} must have equal sizes, or 1, in all axes "
            f"but axis {axis}"
        ) from None


def _repeated(name: str, values: Any, shape: tuple[int, ...]) -> Any:
    own = aval_of(values).shape
    if len(own) > len(shape) or any(n not in (1, m) for n, m in zip(reversed(own), reversed(shape), strict=False)):
        raise ShapeError(f"{name}: values of shape {own} do not broadcast to the shape {shape} of the indices")
    return broadcast_in_dim(values, shape, range(len(shape) - len(own), len(shape)))


# --- arguments


def _integers(name: str, indices: Any) -> Any:
    indices = as_operand(name, indices)
    kind = kind_of(aval_of(indices).dtype)
    if kind is BOOL:
        return indices.astype(int)
    if kind is None or kind not in INTEGER:
        found = aval_of(indices).str_short()
        raise TypeError(f"{name}: indices must be integers, got {found}; convert with .astype(int)")
    return indices


def _counted(name: str, mode: Any, indices: Any, size: int) -> tuple[GatherScatterMode, Any]:
    """The mode, and the indices counted from the front under that mode."""
    if mode == "raise":
        raise NotImplementedError(f"{name}: a compiled program cannot raise; use mode 'fill', 'clip' or 'wrap'")
    if mode == "wrap":
        remainder = rem(reaching(indices, size), max(size, 1))
        return GatherScatterMode.PROMISE_IN_BOUNDS, from_front(remainder, size)
    known = GatherScatterMode.from_any(mode)
    return known, indices if known is GatherScatterMode.CLIP else from_front(indices, size)


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"{name}: arrays are immutable; pass inplace=False and use the array that is returned")
