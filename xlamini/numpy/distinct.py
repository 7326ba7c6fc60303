"""The distinct values of an array, by sorting: the elements that differ from their predecessors.

Their number depends on the values. Where those are concrete, the host picks them from the sorted array, so that no
program is compiled for each number of them; inside a traced function the number is given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Tracer, aval_of, canonicalize_dtype, issubdtype
from xlamini.numpy.arguments import as_axis, as_index, as_operand
from xlamini.numpy.creation import full, zeros
from xlamini.numpy.joining import concatenate
from xlamini.numpy.searching import concrete_values, nonzero
from xlamini.numpy.shapes import moveaxis, ravel
from xlamini.primitives import broadcast_in_dim, convert, in_dtype, reshape, where
from xlamini.primitives.base import operators
from xlamini.primitives.reductions.cumulative import cumsum
from xlamini.primitives.reductions.sort import sort_p
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import device_put_value
from xlamini.staging import composite

_BOOL = np.dtype(bool)


class Wanted(NamedTuple):
    """The outputs requested besides the values."""

    indices: bool = False
    inverse: bool = False
    counts: bool = False


VALUES_ONLY = Wanted()


def distinct(
    name: str,
    ar: Any,
    axis: int | None,
    equal_nan: bool,
    size: int | None,
    fill_value: Any,
    wanted: Wanted = VALUES_ONLY,
) -> Any:
    """The sorted distinct values, their first indices, the inverse and the counts; None for outputs not requested."""
    x = as_operand(name, ar)
    rows = x if axis is not None else ravel(x)
    along = 0 if axis is None else as_axis(name, axis, x.ndim)
    values, order, first = in_order(rows, along, equal_nan, wanted.indices or wanted.inverse)
    if size is None and type(first) is not Tracer:
        found, indices, inverse, counts = _picked_here(values, order, first, along, wanted)
    else:
        count = counted(name, first, size)
        if count and not rows.shape[along]:
            return _nothing(name, rows, along, count, fill_value)
        found, indices, inverse, counts = _picked(values, order, first, count, along, fill_value, wanted)
    return found, indices, reshape(inverse, x.shape) if wanted.inverse and axis is None else inverse, counts


def counted(name: str, mask: Any, size: int | None) -> int:
    """The number of elements in the result."""
    return int(np.count_nonzero(concrete_values(name, mask))) if size is None else as_index(name, "size", size)


@composite(static=("axis", "equal_nan", "with_order"))
def in_order(x: Any, axis: int, equal_nan: bool, with_order: bool) -> Any:
    """The slices along `axis` in order, as rows; the order, if wanted; and which of them differ from the one before."""
    rows = moveaxis(x, axis, 0)
    length = rows.shape[0]
    columns = reshape(rows, (length, int(np.prod(rows.shape[1:]))))
    keys = [columns[:, i] for i in range(columns.shape[1])]
    order = iota(canonicalize_dtype(int), length) if with_order or x.ndim > 1 else None
    if keys:
        operands = keys if order is None else [*keys, order]
        found = sort_p.bind(*operands, dimension=0, is_stable=True, num_keys=len(keys))
        keys, order = found[: len(keys)], order if order is None else found[-1]
    differ = full(length, False, _BOOL)
    for key in keys:
        differ = operators.bitwise_or(differ, changes(key, equal_nan))
    first = operators.bitwise_or(differ, operators.equal(iota(np.dtype("int32"), length), 0))
    return keys[0] if x.ndim == 1 else rows[order], order, first


def changes(x: Any, equal_nan: bool) -> Any:
    """A mask of the elements that differ from their predecessor, cyclically."""
    if not x.shape[0]:
        return full(0, False, _BOOL)
    before = concatenate([x[-1:], x[:-1]])
    differ = operators.not_equal(x, before)
    if not equal_nan or not issubdtype(x.dtype, np.inexact):
        return differ
    nans = operators.bitwise_and(operators.not_equal(x, x), operators.not_equal(before, before))
    return operators.bitwise_and(differ, operators.bitwise_not(nans))


def starts_of(mask: Any, size: int) -> tuple[Any, Any]:
    """The first `size` places where a mask holds, and which of them are no filling."""
    (starts,) = nonzero(mask, size=size, fill_value=0)
    return starts, operators.less(iota(np.dtype("int32"), size), mask.sum())


# --- helpers


def _nothing(name: str, x: Any, axis: int, size: int, fill_value: Any) -> Any:
    if fill_value is None:
        raise ValueError(f"{name}: of no elements there is none to fill size={size} with; give `fill_value`")
    empty = zeros(0, canonicalize_dtype(int))
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return full(shape, fill_value, x.dtype), empty, empty, empty


def _picked_here(values: Any, order: Any, first: Any, axis: int, wanted: Wanted) -> list[Any]:
    """The four outputs for concrete sorted values, picked on the host."""
    mask = np.asarray(first)
    starts = np.flatnonzero(mask)
    integer = canonicalize_dtype(int)
    found: list[Any] = [np.moveaxis(np.asarray(values)[starts], 0, axis), None, None, None]
    if wanted.indices:
        found[1] = np.asarray(order)[starts]
    if wanted.inverse:
        found[2] = np.empty(mask.shape, integer)
        found[2][np.asarray(order)] = np.cumsum(mask, dtype=integer) - 1
    if wanted.counts:
        found[3] = np.diff(starts, append=len(mask)).astype(integer)
    kept = device_put_value(found[0], aval=aval_of(values).update(shape=found[0].shape))
    return [kept, *(part if part is None else device_put_value(part) for part in found[1:])]


@composite(static=("count", "axis", "wanted"))
def _picked(
    values: Any, order: Any, first: Any, count: int, axis: int, fill_value: Any, wanted: Wanted
) -> tuple[Any, ...]:
    """The four parts of sorted values while tracing."""
    starts, taken = starts_of(first, count)
    integer = canonicalize_dtype(int)
    group = cumsum(convert(first, integer)) - 1
    inverse = zeros(first.shape, integer).at[order].set(group) if wanted.inverse else None
    counts = zeros(count, integer).at[group].add(1, mode="drop") if count else group
    found = values[starts]
    if fill_value is not None:
        kept = broadcast_in_dim(taken, found.shape, (0,))
        filling = in_dtype(fill_value, values.dtype)
        filling = filling if not aval_of(filling).ndim else broadcast_in_dim(filling, found.shape, range(1, found.ndim))
        found = where(kept, found, filling)
    return moveaxis(found, 0, axis), order[starts] if wanted.indices else None, inverse, counts
