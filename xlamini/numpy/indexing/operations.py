"""Reads and updates of the elements that a plan selects: get, and set, add, multiply…"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Shape, ShapeError, aval_of, literal, result_type
from xlamini.core.sizes.expression import SymbolicSize, is_symbolic_shape, max_size, min_size
from xlamini.numpy.indexing.access import GatherWindows, ResultFrame, frame_of, windows
from xlamini.numpy.indexing.plan import IndexPlan, IndexPoint, NewAxis, Span, bound_leaves
from xlamini.primitives import (
    bitwise_and,
    broadcast_in_dim,
    broadcasted_iota,
    eq,
    expand_dims,
    in_dtype,
    kind_of,
    reshape,
    rev,
    squeeze,
    where,
    zeros,
)
from xlamini.primitives.base.dtype_kinds import EXTENDED
from xlamini.primitives.elementwise import arithmetic
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice
from xlamini.primitives.indexing.gather import gather
from xlamini.primitives.indexing.gather_numbers import GatherScatterMode, as_scatter
from xlamini.primitives.indexing.scatter import (
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.slice import slice


class IndexOptions(NamedTuple):
    """The caller's options: the mode for out-of-bounds indices (None: the default), and promises."""

    mode: GatherScatterMode | None = None
    fill_value: Any = None
    indices_are_sorted: bool = False
    unique_indices: bool = False


_DEFAULTS = IndexOptions()

_DENSE = 8
"""A slice with a step up to this is written with what is between: that is vectorised, and a scatter is not."""

_INDEX = np.dtype(np.int32)


class Update(NamedTuple):
    """A kind of update: the new element as a function of the old one and the value, and the equivalent scatter."""

    combine: Callable[[Any, Any], Any]
    scatter: Callable[..., Any]


UPDATES = {
    "set": Update(lambda old, new: new, scatter),
    "add": Update(arithmetic.add, scatter_add),
    "subtract": Update(arithmetic.sub, scatter_sub),
    "multiply": Update(arithmetic.mul, scatter_mul),
    "min": Update(arithmetic.min, scatter_min),
    "max": Update(arithmetic.max, scatter_max),
}


def get(x: Any, plan: IndexPlan, leaves: Sequence[Any], options: IndexOptions = _DEFAULTS) -> Any:
    """Read the elements of `x` that the plan selects."""
    x = expand_dims(x, plan.inserted) if plan.inserted else x
    filling = options.mode is GatherScatterMode.FILL_OR_DROP
    if plan.is_basic and (plan.is_safe or not filling):
        return _read_box(x, plan, leaves)
    found = windows(plan, leaves, aval_of(x).shape)
    if 0 in found.frame.shape:
        return zeros(aval_of(x).update(shape=found.frame.shape))
    read = gather(
        x,
        found.indices,
        found.numbers,
        found.sizes,
        unique_indices=options.unique_indices or plan.unique,
        indices_are_sorted=options.indices_are_sorted,
        mode=options.mode or GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=options.fill_value,
    )
    return _framed(read, found.frame)


def update(
    x: Any, values: Any, plan: IndexPlan, leaves: Sequence[Any], how: str, options: IndexOptions = _DEFAULTS
) -> Any:
    """`x` with the elements that the plan selects updated; the dtype stays that of `x`."""
    aval = aval_of(x)
    dtype = aval.dtype if how == "set" else result_type(x, values)
    x, values = in_dtype(x, dtype), in_dtype(values, dtype)
    x = expand_dims(x, plan.inserted) if plan.inserted else x
    written = _written(x, values, plan, leaves, UPDATES[how], options)
    return in_dtype(reshape(written, aval.shape), aval.dtype, aval.weak_type)


def _written(x: Any, values: Any, plan: IndexPlan, leaves: Sequence[Any], how: Update, options: IndexOptions) -> Any:
    clip = options.mode is GatherScatterMode.CLIP
    if plan.is_basic and _is_dense(plan, aval_of(x).dtype) and (plan.is_safe or clip):
        return _write_box(x, values, plan, leaves, how)
    found = windows(plan, leaves, aval_of(x).shape)
    updates = _unframed(values, found.frame)
    if 0 in found.frame.shape or not aval_of(x).size:
        return x
    return _scattered(x, updates, found, how, plan, options)


def _scattered(x: Any, updates: Any, found: GatherWindows, how: Update, plan: IndexPlan, options: IndexOptions) -> Any:
    return how.scatter(
        x,
        found.indices,
        updates,
        as_scatter(found.numbers),
        indices_are_sorted=options.indices_are_sorted,
        unique_indices=options.unique_indices or plan.unique,
        mode=options.mode,
    )


# --- the result and what is read


def _framed(read: Any, frame: ResultFrame) -> Any:
    """The elements read, in the shape of the user's result."""
    if frame.reverse:
        read = rev(read, frame.read_reverse)
    return expand_dims(read, frame.new) if frame.new else read


def _unframed(values: Any, frame: ResultFrame) -> Any:
    """The user's values, broadcast to the shape of the result, in the shape to be written."""
    values = _fitted(values, frame.shape)
    if frame.new:
        values = reshape(values, frame.read_shape)
    return rev(values, frame.read_reverse) if frame.reverse else values


def _fitted(values: Any, shape: Shape) -> Any:
    """Values repeated into `shape`; leading axes of size 1 may be too many, as in NumPy."""
    given = aval_of(values)
    extra = max(0, given.ndim - len(shape))
    own = given.shape[extra:]
    fits = all(n == 1 for n in given.shape[:extra]) and all(
        n in (1, m) for n, m in zip(reversed(own), reversed(shape), strict=False)
    )
    if not fits:
        raise ShapeError(
            f"a value of shape {given.shape} does not broadcast to the shape {shape} of what the index selects; "
            "sizes must be equal or 1, counted from the last axis"
        )
    return broadcast_in_dim(reshape(values, own), shape, range(len(shape) - len(own), len(shape)))


# --- boxes


class _Box(NamedTuple):
    """A strided box: start, size and step along each axis of the array, and the axes that are points."""

    starts: list[Any]
    wrap: list[bool]
    sizes: list[int]
    steps: list[int]
    points: list[int]


def _box(plan: IndexPlan, leaves: Sequence[Any]) -> _Box:
    axes = plan.axes()
    starts = bound_leaves(axes, leaves)
    spans = [e if type(e) is Span else Span(1, 1, 0) for e in axes]
    return _Box(
        starts,
        [isinstance(e, IndexPoint | Span) and e.wrap for e in axes],
        [max_size((s.size - 1) * abs(s.step) + 1, 0) for s in spans],
        [s.step for s in spans],
        [axis for axis, e in enumerate(axes) if type(e) is IndexPoint],
    )


def _cut(x: Any, box: _Box, steps: Sequence[int] | None = None) -> Any:
    """The box, whole or by these steps, with its points as axes of size 1."""
    if all(isinstance(start, int | SymbolicSize) for start in box.starts):
        return slice(x, box.starts, [lo + n for lo, n in zip(box.starts, box.sizes, strict=True)], steps)
    found = dynamic_slice(x, box.starts, box.sizes, allow_negative_indices=box.wrap)
    return found if steps is None else slice(found, [0] * len(steps), box.sizes, steps)


def _read_box(x: Any, plan: IndexPlan, leaves: Sequence[Any]) -> Any:
    box = _box(plan, leaves)
    if is_symbolic_shape(box.sizes):
        x, box = _forwards(x, box, [e.size if type(e) is Span else 1 for e in plan.axes()])
    read = _cut(x, box, [abs(step) for step in box.steps])
    backwards = [axis for axis, step in enumerate(box.steps) if step < 0]
    read = rev(read, backwards) if backwards else read
    new = _new_axes(plan)
    read = squeeze(read, box.points)
    return expand_dims(read, new) if new else read


def _forwards(x: Any, box: _Box, counts: Sequence[int]) -> tuple[Any, _Box]:
    """The array, turned round where steps lead back, and the box in it, from which follow the counts of the plan."""
    shape, starts, steps = aval_of(x).shape, list(box.starts), list(box.steps)
    back = [d for d, step in enumerate(steps) if step < -1 and isinstance(starts[d], int | SymbolicSize)]
    for d in back:
        steps[d] = -steps[d]
        starts[d] = shape[d] - 1 - starts[d] - (counts[d] - 1) * steps[d]
    x = rev(x, back) if back else x
    return x, _with_last_gaps(box._replace(starts=starts, steps=steps), counts, shape)


def _new_axes(plan: IndexPlan) -> list[int]:
    shown = [e for e in plan.entries if type(e) in (NewAxis, Span)]
    return [d for d, e in enumerate(shown) if type(e) is NewAxis]


def _is_dense(plan: IndexPlan, dtype: Any) -> bool:
    """True if writing the whole box, gaps included, is faster than a scatter of the selected elements."""
    share = math.prod(abs(e.step) for e in plan.entries if type(e) is Span)
    if share > 1 and is_symbolic_shape(s.size for s in plan.entries if type(s) is Span):
        return False  # there may be no element, and none has no gaps
    return share == 1 or (share <= _DENSE and kind_of(dtype) is not EXTENDED)  # which has no zero to fill gaps with


def _write_box(x: Any, values: Any, plan: IndexPlan, leaves: Sequence[Any], how: Update) -> Any:
    box = _box(plan, leaves)
    counts = [-(-n // abs(step)) for n, step in zip(box.sizes, box.steps, strict=True)]
    values = reshape(_unframed(values, frame_of(plan)), counts)
    if any(abs(step) > 1 for step in box.steps):
        box = _with_last_gaps(box, counts, aval_of(x).shape)
        values = _combined(_cut(x, box), values, box, how)
    elif how is not UPDATES["set"]:
        values = how.combine(_cut(x, box), values)
    if tuple(box.sizes) == aval_of(x).shape:
        return values
    return dynamic_update_slice(x, values, box.starts, allow_negative_indices=box.wrap)


def _with_last_gaps(box: _Box, counts: Sequence[int], shape: Shape) -> _Box:
    """The box with the gaps after the last elements, where they statically exist: so it may be all of x."""
    axes = zip(box.starts, box.sizes, box.steps, counts, shape, strict=True)
    sizes = [
        min_size(n * abs(step), m - lo) if abs(step) > 1 and isinstance(lo, int | SymbolicSize) else size
        for lo, size, step, n, m in axes
    ]
    return box._replace(sizes=sizes)


def _combined(old: Any, values: Any, box: _Box, how: Update) -> Any:
    """The updated box; its gaps are unchanged."""
    steps, shape = [abs(step) for step in box.steps], aval_of(old).shape
    backwards = [axis for axis, step in enumerate(box.steps) if step < -1]
    values = rev(values, backwards) if backwards else values
    ends = [n - (m - 1) * step - 1 for n, m, step in zip(shape, aval_of(values).shape, steps, strict=True)]
    around = [(0, end, step - 1) for end, step in zip(ends, steps, strict=True)]
    values = pad(values, in_dtype(0, aval_of(old).dtype), around)
    meant = [_every(step, shape, axis) for axis, step in enumerate(steps) if step > 1]
    return where(functools.reduce(bitwise_and, meant), how.combine(old, values), old)


def _every(step: int, shape: Shape, axis: int) -> Any:
    """Every such place along an axis, from the first on."""
    return eq(arithmetic.rem(broadcasted_iota(_INDEX, shape, axis), literal(step, _INDEX)), literal(0, _INDEX))


# --- functions of the elements themselves


def apply(
    x: Any, func: Callable[[Any], Any], plan: IndexPlan, leaves: Sequence[Any], options: IndexOptions = _DEFAULTS
) -> Any:
    """`x` with `func` applied to each element that the plan points at, as often as it does."""
    aval = aval_of(x)
    x = expand_dims(x, plan.inserted) if plan.inserted else x
    found = windows(plan, leaves, aval_of(x).shape)
    if 0 in found.frame.shape:
        return reshape(x, aval.shape)
    applied = scatter_apply(
        x,
        found.indices,
        func,
        as_scatter(found.numbers),
        update_shape=found.frame.read_shape,
        indices_are_sorted=options.indices_are_sorted,
        mode=options.mode,
    )
    return in_dtype(reshape(applied, aval.shape), aval.dtype, aval.weak_type)
