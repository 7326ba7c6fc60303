"""Left folds with any function of two operands: over an axis, over parts of it, and into elements of an array.

They are what `jnp.ufunc` falls back on: each is one loop in the program, in NumPy's order.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ShapedArray, aval_of, check_user_dtype
from xlamini.core.tracing.state import state
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.numpy.indexing.operations import get
from xlamini.numpy.indexing.parse import plan_of
from xlamini.numpy.indexing.plan import Rules
from xlamini.numpy.indexing.take import take
from xlamini.numpy.repeating import broadcast_to
from xlamini.primitives import (
    broadcast_in_dim,
    convert,
    expand_dims,
    full,
    in_dtype,
    index_in_dim,
    moveaxis,
    reshape,
    slice_in_dim,
    where as select,
)
from xlamini.primitives.base import operators
from xlamini.primitives.indexing.dynamic_slice import dynamic_index_in_dim
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_index_in_dim
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.iota import iota
from xlamini.staging import composite
from xlamini.staging.run.jit.make_jaxpr import eval_shape
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.scan.api import scan


class Folded(NamedTuple):
    """A fold: a function of two arrays, its name for errors, and its neutral element (or None)."""

    name: str
    function: Callable[[Any, Any], Any]
    identity: Any = None

    def into(self, dtype: Any) -> Callable[[Any, Any], Any]:
        """The function with its result in one dtype, as the state of a loop must be."""
        return lambda x, y: convert(self.function(x, y), dtype)

    def prepared(self, name: str, x: Any, dtype: Any) -> Any:
        """The array in the dtype of the result: the one asked for, or that of the function."""
        wanted = aval_of(x).dtype if dtype is None else check_user_dtype(dtype, name)
        element = ShapedArray((), wanted)
        return convert(x, eval_shape(self.function, element, element).dtype)


@composite(static=("fun", "axis", "dtype", "keepdims"))
def reduced(fun: Folded, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    """The fold of all elements along an axis, or along all, starting with `initial`, where `where` holds."""
    name = f"{fun.name}.reduce"
    if isinstance(axis, tuple):
        raise NotImplementedError(f"{name}: axis must be one axis or None, got {axis}; reduce one after the other")
    x, shape = as_operand(name, a), aval_of(a).shape
    mask = None if where is None else broadcast_to(where, shape)
    if axis is None:
        x, mask = (v if v is None else reshape(v, (aval_of(v).size,)) for v in (x, mask))
        kept: tuple[int, ...] = (1,) * len(shape)
        axis = 0
    else:
        axis = as_axis(name, axis, len(shape))
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
    x = moveaxis(fun.prepared(name, x, dtype), axis, 0)
    result = _from_first(name, fun, x, initial, mask if mask is None else moveaxis(mask, axis, 0))
    return reshape(result, kept) if keepdims else result


def _from_first(name: str, fun: Folded, x: Any, initial: Any, mask: Any) -> Any:
    aval = aval_of(x)
    start = fun.identity if initial is None else initial
    if start is None and (mask is not None or not aval.shape[0]):
        reason = "with `where`" if mask is not None else "without elements"
        raise ValueError(f"{name}: {reason} a value to begin with is needed, and {fun.name} has none; give `initial`")
    if initial is None and mask is None and aval.shape[0]:
        first, x = index_in_dim(x, 0, keepdims=False), slice_in_dim(x, 1, None)
    else:
        first = broadcast_to(in_dtype(as_operand(name, start), aval.dtype), aval.shape[1:])
    return _over(fun.into(aval.dtype), convert(first, aval.dtype), x, mask)


def _over(combine: Any, first: Any, x: Any, mask: Any) -> Any:
    def step(total: Any, element: Any) -> Any:
        value, held = element
        new = combine(total, value)
        return (new if held is None else select(held, new, total)), None

    return scan(step, first, (x, mask))[0]


@composite(static=("fun", "axis", "dtype"))
def accumulated(fun: Folded, a: Any, axis: int, dtype: Any) -> Any:
    """The cumulative results of `reduced`, up to each element."""
    name = f"{fun.name}.accumulate"
    x = fun.prepared(name, as_operand(name, a), dtype)
    axis, aval = as_axis(name, axis, aval_of(x).ndim), aval_of(x)
    if not aval.shape[axis]:
        return x
    x, combine = moveaxis(x, axis, 0), fun.into(aval.dtype)
    first = convert(index_in_dim(x, 0, keepdims=False), aval.dtype)

    def step(total: Any, value: Any) -> Any:
        new = combine(total, value)
        return new, new

    _, rest = scan(step, first, slice_in_dim(x, 1, None))
    return moveaxis(concatenate([expand_dims(first, (0,)), rest], 0), 0, axis)


@composite(static=("fun", "axis", "dtype"))
def reduced_parts(fun: Folded, a: Any, indices: Any, axis: int, dtype: Any) -> Any:
    """The parts of an axis that begin at `indices`, each reduced to one element.

    All parts grow at once: each iteration of the loop adds one element to every part that has one left.
    """
    name = f"{fun.name}.reduceat"
    x, starts = fun.prepared(name, as_operand(name, a), dtype), as_operand(name, indices)
    if aval_of(starts).ndim != 1:
        raise ValueError(f"{name}: indices must be one-dimensional, got shape {aval_of(starts).shape}")
    axis, aval = as_axis(name, axis, aval_of(x).ndim), aval_of(x)
    x, combine = moveaxis(x, axis, 0), fun.into(aval.dtype)
    ends = _ends(starts, aval.shape[axis])

    def step(totals: Any, element: Any) -> Any:
        place, value = element
        inside = operators.bitwise_and(operators.greater(place, starts), operators.less(place, ends))
        value = broadcast_in_dim(value, aval_of(totals).shape, range(1, aval.ndim))
        held = broadcast_in_dim(inside, aval_of(totals).shape, (0,))
        return select(held, combine(totals, value), totals), None

    places = iota(aval_of(starts).dtype, aval.shape[axis])
    return moveaxis(scan(step, convert(take(x, starts, 0), aval.dtype), (places, x))[0], 0, axis)


def _ends(starts: Any, size: int) -> Any:
    """The end of each part: the start of the next one, or the end of the axis."""
    last = full(aval_of(starts).update(shape=(min(aval_of(starts).shape[0], 1),)), size)
    return concatenate([slice_in_dim(starts, 1, None), last], 0) if aval_of(starts).shape[0] else starts


def updated(fun: Folded, x: Any, indices: Any, values: Any) -> Any:
    """The elements at `indices` combined with `values`, one after the other."""
    numbers = np.arange(aval_of(x).size, dtype=np.int32).reshape(aval_of(x).shape)
    places = get(as_operand(fun.name, numbers), *plan_of(indices, numbers.shape, Rules(eager=state.builder is None)))
    return _updated_one_by_one(fun, x, places, broadcast_to(values, aval_of(places).shape))


@composite(static=("fun",))
def _updated_one_by_one(fun: Folded, x: Any, places: Any, values: Any) -> Any:
    aval, count = aval_of(x), aval_of(places).size
    places, values = reshape(places, (count,)), reshape(values, (count,))
    combine = fun.into(aval.dtype)

    def step(i: Any, flat: Any) -> Any:
        place, value = (dynamic_index_in_dim(v, i, keepdims=False) for v in (places, values))
        old = dynamic_index_in_dim(flat, place, keepdims=False)
        return dynamic_update_index_in_dim(flat, combine(old, value), place, 0)

    return reshape(fori_loop(0, count, step, reshape(x, (aval.size,))), aval.shape)
