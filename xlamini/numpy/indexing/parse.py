"""The parser of indices in NumPy's notation; plan.py defines the result."""
from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from xlamini.core import Shape, Tracer, UnknownValue, aval_of, literal, memoised, tree_leaves, value_of
from xlamini.core.errors import NonConcreteBooleanIndexError
from xlamini.core.errors.frames import user_line
from xlamini.core.flags.jax_flags import check_static_indices
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.sizes.shapes import span
from xlamini.core.tracing.host_arrays import refuse_masked
from xlamini.core.tracing.state import state
from xlamini.numpy.construction import asarray
from xlamini.numpy.indexing.plan import (
    Between,
    Entry,
    Indexed,
    IndexPlan,
    IndexPoint,
    NewAxis,
    Points,
    Rules,
    Span,
    whole,
)
from xlamini.numpy.indexing.slices import Slice
from xlamini.primitives import BOOL, INTEGER, kind_of
from xlamini.runtime import ArrayImpl
from xlamini.runtime.arrays.to_host import to_numpy

_ARRAYS = frozenset({ArrayImpl, Tracer, np.ndarray})
_SLICES = frozenset({slice, Slice})
_PLAIN = frozenset({int, type(None), type(Ellipsis)})
_BOUNDS = frozenset({int, type(None)})

GREATEST_OPERAND = 2**31 - 1
"""The greatest number that is an operand of an eager program, where a static one would compile another."""


def plan_of(index: Any, shape: Shape, rules: Rules) -> Indexed:
    """The plan and the leaves of an index into an array of this shape.

    Raises IndexError for too many indices, for one out of bounds unless flag `check_static_indices` is off, for a mask
    of the wrong shape; TypeError for what is no index.
    """
    if rules.strict and not check_static_indices.value:
        rules = rules._replace(strict=False, clip=rules.reading)
    key = _key(index)
    return _IndexReader(shape, rules).read(settled_items(index)) if key is None else _plan_of_key(key, shape, rules)


def check_bounds(index: Any, shape: Shape) -> None:
    """IndexError for a static index out of bounds, also where flag `check_static_indices` is off.

    Not in a traced function, where JAX clamps or drops such an index into a ref too.
    """
    if state.builder is None and not check_static_indices.value:
        key, rules = _key(index), Rules(eager=True)
        _ = _IndexReader(shape, rules).read(settled_items(index)) if key is None else _plan_of_key(key, shape, rules)


def _key(index: Any) -> tuple[Any, ...] | None:
    """An index of Python numbers, slices, None and '...' in hashable form; None if there is anything else in it."""
    key = []
    for item in index if type(index) is tuple else (index,):
        if type(item) is slice:
            item = start, stop, step = item.start, item.stop, item.step
            if type(start) not in _BOUNDS or type(stop) not in _BOUNDS or type(step) not in _BOUNDS:
                return None
        elif type(item) not in _PLAIN:
            return None
        key.append(item)
    return tuple(key)


@memoised("helper: index plans", 4096)
def _plan_of_key(key: tuple[Any, ...], shape: Shape, rules: Rules) -> Indexed:
    items = tuple(slice(*item) if type(item) is tuple else item for item in key)
    return _IndexReader(shape, rules).read(settled_items(items))


class _IndexReader:
    """One pass over the items of an index, axis by axis."""

    def __init__(self, shape: Shape, rules: Rules):
        self.shape, self.rules = shape, rules
        self.axis = 0
        self.entries: list[Entry] = []
        self.leaves: list[Any] = []
        self.inserted: list[int] = []
        self.unique = True

    def read(self, items: list[Any]) -> Indexed:
        rest = len(self.shape) - sum(map(_axes_taken, items))
        if rest < 0:
            raise IndexError(
                f"too many indices: an array of shape {self.shape} has {len(self.shape)} axes, but "
                f"{len(self.shape) - rest} are indexed"
            )
        for item in items:
            self.item(item, rest)
        self.whole_axes(len(self.shape) - self.axis)
        return Indexed(IndexPlan(tuple(self.entries), tuple(self.inserted), self.unique), tuple(self.leaves))

    def item(self, item: Any, rest: int) -> None:
        if type(item) is int:
            self.point(item)
        elif type(item) is slice:
            self.span(item)
        elif type(item) is Slice:
            self.window(item)
        elif item is None:
            self.entries.append(NewAxis())
        elif item is Ellipsis:
            self.entries.append(Between())
            self.whole_axes(rest)
        elif aval_of(item).dtype == np.bool_:
            self.mask(item)
        else:
            self.points(item)

    def whole_axes(self, count: int) -> None:
        for _ in range(count):
            self.entries.append(whole(self.shape[self.axis]))
            self.axis += 1

    def point(self, index: int) -> None:
        size, rules = self.shape[self.axis], self.rules
        at = index + size if index < 0 and rules.wrap else index
        safe = 0 <= at < size
        if not safe and rules.strict:
            raise out_of_bounds(index, self.axis, size)
        if not safe and rules.clip and size:
            at, safe = min(max(at, 0), size - 1), True
        operand = rules.eager and safe and at <= GREATEST_OPERAND
        if operand:
            self.leaves.append(at)
        self.entries.append(IndexPoint(None if operand else at if safe else size, safe, False))
        self.axis += 1

    def span(self, item: slice) -> None:
        size = self.shape[self.axis]
        start, count, step = _bounds(item, size, self.axis)
        if self.rules.eager and 0 < count < size and start <= GREATEST_OPERAND:
            self.leaves.append(start)
            self.entries.append(Span(count, step, None))
        else:
            self.entries.append(Span(count, step, start))
        self.axis += 1

    def window(self, item: Slice) -> None:
        """A slice by start and size; a static one is a slice like others, unless it is for `mode` to decide."""
        size, length = self.shape[self.axis], (item.size - 1) * item.stride + 1 if item.size else 0
        if length > size:
            raise _too_long(item, self.axis, size)
        at = _known_start(item.start, size, self.rules)
        if at is not None and 0 <= at <= size - length:
            self.span(slice(at, at + length, item.stride))
            return
        if at is not None and self.rules.strict:
            raise IndexError(f"{item} is out of bounds for axis {self.axis} with size {size}; {_starts(size - length)}")
        self.leaves.append(item.start)
        self.entries.append(Span(item.size, item.stride, None, False, self.rules.wrap))
        self.axis += 1

    def points(self, item: Any) -> None:
        size, rules = self.shape[self.axis], self.rules
        if rules.strict and rules.reading and _on_host(item):
            _check_in_bounds(_host_value(item), size, self.axis, rules.wrap)
        self.leaves.append(item)
        is_point = aval_of(item).ndim == 0
        self.entries.append(IndexPoint(None, False, rules.wrap) if is_point else Points(rules.wrap))
        self.unique = self.unique and is_point
        self.axis += 1

    def mask(self, item: np.ndarray) -> None:
        taken = self.shape[self.axis : self.axis + item.ndim]
        if item.shape != taken:
            raise IndexError(
                f"a boolean index of shape {item.shape} does not fit: from axis {self.axis} on the array has shape "
                f"{taken}, and the two must be equal"
            )
        if item.ndim == 0:
            self.inserted.append(self.axis + len(self.inserted))
        for places in np.atleast_1d(item).nonzero():
            self.leaves.append(places.astype(np.int32))
            self.entries.append(Points(False))
        self.axis += item.ndim


# --- the items of an index: int, slice, None, Ellipsis, ndarray mask, integer array


def settled_items(index: Any) -> list[Any]:
    """The items of an index, each of one of the few types that are read."""
    if type(index) is list:
        raise TypeError(
            "a list is no index, as it is slow to find out what is in it; write x[jnp.array(index)], or "
            "x[tuple(index)] for one index per axis"
        )
    items = index if type(index) is tuple else (index,)
    found = [x if type(x) in _PLAIN or type(x) in _SLICES else _settled(x, i) for i, x in enumerate(items)]
    if len([x for x in found if x is Ellipsis]) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    return found


def _settled(item: Any, position: int) -> Any:
    if type(item) in _ARRAYS:
        return _settled_array(item, position)
    if type(item) is SymbolicSize:
        return _settled_array(literal(item, np.int32), position)
    refuse_masked(item)
    if isinstance(item, tuple | list | np.ndarray):
        return _settled_array(_as_one_array(item), position)
    if isinstance(item, bool | np.bool_):
        return np.asarray(item)
    if isinstance(item, float | complex | str | np.generic) and not hasattr(item, "__index__"):
        raise _no_index(item, position, TypeError)
    try:
        return operator.index(item)  # type: ignore[arg-type]
    except TypeError:
        raise _no_index(item, position, IndexError) from None


def _as_one_array(item: Any) -> Any:
    """The array of an index that is a sequence, of numbers, arrays or sequences of these."""
    if not isinstance(item, np.ndarray) and any(type(x) is Tracer for x in tree_leaves(item)):
        return asarray(item)
    return np.asarray(item, None if len(item) else np.int32)


def _no_index(item: Any, position: int, kind: type[Exception]) -> Exception:
    return kind(
        f"index {position} is {item!r} of type {type(item).__name__}; an index is an integer, a slice, None, '...', "
        "or an array of integers or booleans (convert with int() or .astype(int))"
    )


def _settled_array(x: Any, position: int) -> Any:
    aval = aval_of(x)
    kind = kind_of(aval.dtype)
    if kind is BOOL:
        return _known_mask(x, position)
    if kind is None or kind not in INTEGER:
        raise TypeError(
            f"index {position} is an array of type {aval.str_short(short_dtypes=False)}; an index array holds "
            "integers or booleans (convert with .astype(int))"
        )
    return int(_host_value(x)) if not aval.shape and _on_host(x) else x


def _known_mask(mask: Any, position: int) -> np.ndarray:
    try:
        return np.asarray(value_of(mask))
    except UnknownValue:
        raise NonConcreteBooleanIndexError(
            f"index {position} is the traced mask {mask!r} at {user_line()}, so the size of the result is not known; "
            "keep the shape and write jnp.where(mask, x, 0), or fix the size with jnp.nonzero(mask, size=...)"
        ) from None


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if type(item) is np.ndarray and item.dtype == np.bool_:
        return item.ndim
    return 1


def _bounds(item: slice, size: int, axis: int) -> tuple[int, int, int]:
    """First place in memory, number of elements and step of a slice of an axis of this size."""
    try:
        start, count, step = span(item, size)
    except TypeError:
        _bad_slice(item, axis)
    if type(count) is int and count < 2:
        return (start if count else 0), count, 1
    return (start if step > 0 else start + (count - 1) * step), count, step


def _known_start(start: Any, size: int, rules: Rules) -> int | None:
    """The start of a Slice as a place, if it is a number, or an array at hand that is read."""
    if type(start) is not int and not (rules.reading and _on_host(start)):
        return None
    at = start if type(start) is int else int(_host_value(start))
    return at + size if at < 0 and rules.wrap else at


def _too_long(item: Slice, axis: int, size: int) -> IndexError:
    return IndexError(f"{item} is longer than axis {axis} with size {size}; take fewer elements")


def _starts(last: int) -> str:
    return f"its start is from 0 to {last}"


def _bad_slice(item: slice, axis: int) -> NoReturn:
    ends = item.start, item.stop, item.step
    if any(type(end) is Tracer for end in ends):
        raise IndexError(
            f"the slice of axis {axis} has a traced bound, but the size of a result must be known while tracing, at "
            f"{user_line()}; write xlamini.ds(start, size) for start:start + size"
        ) from None
    raise TypeError(f"the slice {item} of axis {axis} has a bound that is no integer; convert it with int()") from None


# --- arrays whose numbers are at hand


def _on_host(x: Any) -> bool:
    """True if reading the numbers costs no transfer."""
    return type(x) is np.ndarray or (type(x) is ArrayImpl and is_on_cpu(x))


def is_on_cpu(x: ArrayImpl) -> bool:
    device = getattr(x._sharding, "_device", None)
    return device is not None and device.platform == "cpu"


def _host_value(x: Any) -> np.ndarray:
    return x if type(x) is np.ndarray else to_numpy(x)


def _check_in_bounds(indices: np.ndarray, size: int, axis: int, wrap: bool) -> None:
    """IndexError if one of the indices is out of bounds."""
    if indices.size == 0:
        return
    low, high = int(indices.min()), int(indices.max())
    if high >= size or low < (-size if wrap else 0):
        bad = high if high >= size else low
        raise out_of_bounds(bad, axis, size)


def out_of_bounds(index: int, axis: int, size: int) -> IndexError:
    """The error for an index that is certainly out of bounds."""
    taken = f"it takes {-size} to {size - 1}" if size else "it has no elements"
    return IndexError(f"index {index} is out of bounds for axis {axis} with size {size}; {taken}")
