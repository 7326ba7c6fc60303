"""Padding of what moves elements by position: reshapes, slices, gathers and scatters."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xlamini.core import Equation, Shape, ShapedArray, aval_of, literal
from xlamini.core.errors import PaddingError
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.primitives import broadcasted_iota, clamp, convert, expand_dims, index_in_dim, mul, reshape
from xlamini.primitives.elementwise.arithmetic import add, div, rem, sub
from xlamini.primitives.elementwise.comparison import gt
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice, dynamic_slice_in_dim
from xlamini.primitives.indexing.gather import gather
from xlamini.primitives.indexing.gather_numbers import GatherDimensionNumbers, GatherScatterMode
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.transforms.buckets.padded_sizes import INT32, PaddedSizes, spread, window

_OUTSIDE = -1
"""An index that is out of bounds."""


def reshaped(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    """A reshape of the room, if no size that is padded counts as a stride; else each element is looked up."""
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    room = sizes.rooms(after)
    if all(_is_front(a) and _is_front(b) for a, b in _groups(before, after)):
        return reshape(x, room)
    return looked_up(sizes, x, before, after)


def looked_up(sizes: PaddedSizes, x: Any, before: Shape, after: Shape) -> Any:
    """The elements of a reshaped array: each has its place in the data, and that one a place in the room."""
    room, stored = sizes.rooms(after), sizes.rooms(before)
    whole = ShapedArray(room, INT32)
    flat, stride = spread(0, whole), literal(1, INT32)
    for axis in reversed(range(len(after))):
        flat = add(flat, mul(broadcasted_iota(INT32, room, axis), spread(stride, whole)))
        stride = mul(stride, sizes.data(after[axis]))
    place, step = spread(0, whole), 1
    for size, length in zip(reversed(before), reversed(stored), strict=True):
        count = spread(sizes.data(size), whole)
        place = add(place, mul(rem(flat, count), spread(step, whole)))
        flat, step = div(flat, count), step * length
    rows = GatherDimensionNumbers((), (0,), (0,))
    places = expand_dims(place, (len(room),))
    return gather(reshape(x, (math.prod(stored),)), places, rows, (1,), mode=GatherScatterMode.CLIP)


def _is_front(sizes: Sequence[Any]) -> bool:
    """Whether only the first of some sizes is symbolic."""
    return not any(type(size) is SymbolicSize for size in sizes[1:])


def _groups(before: Shape, after: Shape) -> Iterator[tuple[Shape, Shape]]:
    """The runs of dimensions that a reshape makes of one another."""
    i = j = 0
    while i < len(before) or j < len(after):
        p, q = _next_group(before[i:], after[j:])
        yield before[i : i + p], after[j : j + q]
        i, j = i + p, j + q


def _next_group(before: Shape, after: Shape) -> tuple[int, int]:
    for total in range(1, len(before) + len(after)):
        for p in range(min(total, len(before)) + 1):
            q = total - p
            if q <= len(after) and _is_same(math.prod(before[:p]), math.prod(after[:q])):
                return p, q
    return len(before), len(after)


def _is_same(x: Any, y: Any) -> bool:
    return x is y or (type(x) is int and type(y) is int and x == y)


def sliced(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    """A start that depends on a size is one that the program computes."""
    params, out = eqn.params, eqn.outvars[0].aval
    strides = params["strides"] or (1,) * out.ndim
    for axis, (start, stride) in enumerate(zip(params["start_indices"], strides, strict=True)):
        length = (sizes.room(out.shape[axis]) - 1) * stride + 1
        if type(start) is SymbolicSize:
            x, start = window(x, axis, sizes.data(start), length), 0
        x = slice_in_dim(x, start, start + length, stride, axis)
    return x


def padded(sizes: PaddedSizes, eqn: Equation, x: Any, value: Any) -> Any:
    """The padding of the room becomes the value, so that more of it may follow; a low edge by a size is cut to it."""
    aval, edges = eqn.invars[0].aval, eqn.params["padding_config"]
    x = sizes.masked(x, aval, [i for i, (_, high, inner) in enumerate(edges) if _is_some(high) or inner], value)
    stored, wanted = aval_of(x).shape, sizes.rooms(eqn.outvars[0].aval.shape)
    room = []
    for length, size, (low, _, inner) in zip(stored, wanted, edges, strict=True):
        front, cut = sizes.room(low), type(low) is SymbolicSize
        room.append((front, size + cut * front - front - max((length - 1) * (inner + 1) + 1, 0), inner))
    out = eqn.primitive.bind(x, value, padding_config=tuple(room))
    for axis, (low, _, _) in enumerate(edges):
        if type(low) is SymbolicSize:
            out = window(out, axis, sizes.surplus(low), wanted[axis])
    return out


def _is_some(edge: Any) -> bool:
    return type(edge) is SymbolicSize or edge > 0


def dynamically_sliced(sizes: PaddedSizes, eqn: Equation, x: Any, *starts: Any) -> Any:
    """Starts are clamped to the data."""
    aval, out = eqn.invars[0].aval, eqn.outvars[0].aval
    for axis, start in enumerate(starts[: aval.ndim]):
        size, length = aval.shape[axis], out.shape[axis]
        at = _clamped(start, sizes, size, length)
        take = window if SymbolicSize in (type(size), type(length)) else _plain_window
        x = take(x, axis, at, sizes.room(length))
    return x


def _plain_window(x: Any, axis: int, start: Any, length: int) -> Any:
    return dynamic_slice_in_dim(x, start, length, axis)


def _clamped(start: Any, sizes: PaddedSizes, size: Any, length: Any) -> Any:
    return clamp(literal(0, INT32), as_int32(start), sub(sizes.data(size), sizes.data(length)))


def as_int32(x: Any) -> Any:
    """Indices as int32; what that cannot hold becomes the number next to it, which is out of bounds too."""
    dtype = aval_of(x).dtype
    given, limits = np.iinfo(dtype), np.iinfo(np.int32)
    if given.max > limits.max:
        x = clamp(literal(max(given.min, limits.min), dtype), x, literal(limits.max, dtype))
    return convert(x, INT32)


def dynamically_updated(sizes: PaddedSizes, eqn: Equation, x: Any, update: Any, *starts: Any) -> Any:
    """An update whose padding would lie over data has there what is in the operand."""
    aval, part = eqn.invars[0].aval, eqn.invars[1].aval
    at = [_clamped(s, sizes, *pair) for s, *pair in zip(starts, aval.shape, part.shape, strict=True)]
    pairs = zip(aval.shape, part.shape, strict=True)
    shorter = [i for i, (size, length) in enumerate(pairs) if type(length) is SymbolicSize and size is not length]
    if not shorter:
        return eqn.primitive.bind(x, update, *at, **eqn.params)
    more = aval_of(update).shape
    longer = pad(x, literal(0, aval.dtype), [(0, more[i] if i in shorter else 0, 0) for i in range(aval.ndim)])
    there = dynamic_slice(longer, at, more)
    result = eqn.primitive.bind(longer, sizes.masked(update, part, shorter, there), *at, **eqn.params)
    for axis in shorter:
        result = slice_in_dim(result, 0, aval_of(x).shape[axis], axis=axis)
    return result


def gathered(sizes: PaddedSizes, eqn: Equation, x: Any, indices: Any) -> Any:
    """Indices are in or out of bounds by the data, not by the room."""
    params, aval = eqn.params, eqn.invars[0].aval
    lengths, numbers = params["slice_sizes"], params["dimension_numbers"]
    _check_windows(aval.shape, lengths, numbers.start_index_map)
    limits = [(aval.shape[d], lengths[d]) for d in numbers.start_index_map]
    return eqn.primitive.bind(
        x,
        within_data(sizes, as_int32(indices), limits, params["mode"]),
        **{**params, "slice_sizes": sizes.rooms(lengths), "indices_are_sorted": False},
    )


def scattered(sizes: PaddedSizes, eqn: Equation, x: Any, indices: Any, updates: Any) -> Any:
    """As in a gather; indices that are no data are out of bounds, so that their updates are dropped."""
    params, aval, numbers = eqn.params, eqn.invars[0].aval, eqn.params["dimension_numbers"]
    lengths = _window_sizes(aval, eqn.invars[2].aval, numbers)
    places = numbers.scatter_dims_to_operand_dims
    _check_windows(aval.shape, lengths, places)
    limits = [(aval.shape[d], lengths[d]) for d in places]
    indices = within_data(sizes, as_int32(indices), limits, params["mode"])
    of_indices = eqn.invars[1].aval
    indices = sizes.masked(indices, of_indices, range(of_indices.ndim - 1), _OUTSIDE)
    mode = GatherScatterMode.FILL_OR_DROP
    return eqn.primitive.bind(
        x, indices, updates, **{**params, "mode": mode, "indices_are_sorted": False, "unique_indices": False}
    )


def _window_sizes(aval: ShapedArray, updates: ShapedArray, numbers: Any) -> list[Any]:
    """The sizes of a scatter's windows by the dimensions of the operand."""
    given = iter(numbers.update_window_dims)
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return [1 if d in left_out else updates.shape[next(given)] for d in range(aval.ndim)]


def _check_windows(shape: Shape, lengths: Sequence[Any], places: Sequence[int]) -> None:
    for d, (size, length) in enumerate(zip(shape, lengths, strict=True)):
        if type(length) is SymbolicSize and (d in places or length is not size):
            raise PaddingError(f"it takes windows of the size {length} at indices, in a dimension of size {size}")


def within_data(sizes: PaddedSizes, indices: Any, limits: Sequence[tuple[Any, Any]], mode: Any) -> Any:
    """Index vectors of int32 whose components are clipped, or outside, where a window would not lie in the data."""
    clips = mode is GatherScatterMode.CLIP
    if not (clips or any(type(size) is SymbolicSize for size, _ in limits)):
        return indices
    axis = aval_of(indices).ndim - 1
    parts = [index_in_dim(indices, i, axis) for i in range(len(limits))]
    moved = []
    for part, (size, length) in zip(parts, limits, strict=True):
        last = sub(sizes.data(size), literal(length, INT32))
        if clips:
            part = clamp(literal(0, INT32), part, last)
        elif type(size) is SymbolicSize:
            part = select_n(gt(part, spread(last, aval_of(part))), part, spread(_OUTSIDE, aval_of(part)))
        moved.append(part)
    return concatenate(moved, axis)


def random_bits(sizes: PaddedSizes, eqn: Equation, key: Any) -> Any:
    """As many as there is room for, of which the data are the first: the bits of an array are those of its length."""
    shape, keys = eqn.params["shape"], eqn.invars[0].aval
    if not any(type(size) is SymbolicSize for size in shape):
        return eqn.primitive.bind(key, **eqn.params)
    _check_key(keys)
    bits = eqn.primitive.bind(key, **{**eqn.params, "shape": (math.prod(sizes.rooms(shape)),)})
    if _is_front(shape):
        return reshape(bits, sizes.rooms(shape))
    return looked_up(sizes, bits, (math.prod(shape),), shape)


def random_split(sizes: PaddedSizes, eqn: Equation, key: Any) -> Any:
    """As many keys as there is room for, of which the data are the first."""
    shape = eqn.params["shape"]
    if any(type(size) is SymbolicSize for size in shape):
        _check_key(eqn.invars[0].aval)
    if not _is_front(shape):
        raise PaddingError("the padding would be between its keys")
    return eqn.primitive.bind(key, **{**eqn.params, "shape": sizes.rooms(shape)})


def _check_key(keys: ShapedArray) -> None:
    if keys.shape or "fry" not in str(keys.dtype):
        raise PaddingError("only threefry's bits do not depend on how many are made, of one key")
