"""x.at[index]: an array like `x` with some elements updated, or a reading with other rules for indices out of bounds.

    x.at[1:3].set(0)    x.at[i, j].add(1)    x.at[mask].multiply(2)    x.at[i].get(mode="fill", fill_value=0)

A boolean mask with one value for all that it selects is a choice between old and new, so it may be traced.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from typing import Any, TypedDict, Unpack

import numpy as np

from xlamini.core import ShapedArray, Tracer, aval_of, inline_cached, memoised, result_type, user_stacklevel
from xlamini.core.caching.ambiguity import exact_key
from xlamini.core.dtypes import check_fits
from xlamini.core.tracing.state import state
from xlamini.numpy.arithmetic import power, true_divide
from xlamini.numpy.construction import asarray
from xlamini.numpy.indexing import operations
from xlamini.numpy.indexing.operations import UPDATES, IndexOptions
from xlamini.numpy.indexing.parse import plan_of
from xlamini.numpy.indexing.plan import IndexPlan, Rules
from xlamini.primitives import broadcast_in_dim, check_operands, full, in_dtype, in_sharding, where
from xlamini.primitives.base.promotion import PYTHON_SCALARS
from xlamini.primitives.indexing.gather_numbers import GatherScatterMode
from xlamini.runtime import Array, ArrayImpl
from xlamini.staging import jit

Write = Callable[[Any, Any, str], Any]

_ARRAYS = frozenset({ArrayImpl, Tracer, np.ndarray})
_PROGRAMS = 4096
_WITH_FACTORS: dict[str, Callable[[Any, Any], Any]] = {"divide": true_divide, "power": power}
"""Updates made of a whole-array operation with an array that is 1 where nothing shall change."""


class Promises(TypedDict, total=False):
    """The caller's promises about the indices, and the mode for those out of bounds.

    `mode` is "drop" (of updates; the default), "fill" (of reads), "clip" or "promise_in_bounds"; giving one also allows
    a static integer out of bounds. `wrap_negative_indices`: whether they count from the end.
    """

    indices_are_sorted: bool
    unique_indices: bool
    mode: str | GatherScatterMode | None
    wrap_negative_indices: bool


class At:
    """`x.at`; index it."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array: Any = array

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self.array, index)

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class AtIndex:
    """`x.at[index]`: its methods return a new array, or read; `x` does not change.

    `out_sharding`, a PartitionSpec or NamedSharding, says how the result is split over a mesh.

    >>> x = jnp.zeros(3)
    >>> x.at[1].set(5)
    Array([0., 5., 0.], dtype=float32)
    >>> x.at[jnp.array([0, 0])].add(1)
    Array([2., 0., 0.], dtype=float32)
    """

    __slots__ = ("array", "index")
    array: Any
    index: Any

    def __init__(self, array: Any, index: Any):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"AtIndex({self.array!r}, {self.index!r})"

    def set(self, values: Any, *, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The array with `values` in the place of its elements; where an index repeats one of its values wins."""
        return _updated(self, "set", values, out_sharding, promises)

    def add(self, values: Any, *, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The array with `values` added; all of them where an index repeats."""
        return _updated(self, "add", values, out_sharding, promises)

    def subtract(self, values: Any, *, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The array with `values` subtracted; all of them where an index repeats."""
        return _updated(self, "subtract", values, out_sharding, promises)

    def multiply(self, values: Any, *, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The array with its elements multiplied by `values`; by all of them where an index repeats."""
        return _updated(self, "multiply", values, out_sharding, promises)

    mul = multiply

    def divide(self, values: Any, *, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The array with its elements divided by `values`; of integers, an array of floats."""
        return _updated(self, "divide", values, out_sharding, promises)

    def power(self, values: Any, *, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The array with its elements to the power of `values`."""
        return _updated(self, "power", values, out_sharding, promises)

    def min(self, values: Any, *, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The array with larger elements replaced by `values`."""
        return _updated(self, "min", values, out_sharding, promises)

    def max(self, values: Any, *, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The array with smaller elements replaced by `values`."""
        return _updated(self, "max", values, out_sharding, promises)

    def apply(self, func: Callable[[Any], Any], **promises: Unpack[Promises]) -> Array:
        """The array with `func` applied to the elements; as often as an index occurs."""
        return _applied(self, func, promises)

    def get(self, *, fill_value: Any = None, out_sharding: Any = None, **promises: Unpack[Promises]) -> Array:
        """The elements; with mode "fill" `fill_value` (NaN, or the dtype's extreme) for those out of bounds."""
        return _read(self, fill_value, out_sharding, promises)


# --- what the methods do


def _updated(at: AtIndex, how: str, values: Any, out_sharding: Any, promises: Promises) -> Any:
    if out_sharding is not None:
        return in_sharding(out_sharding, getattr(AtIndex, how), at, values, **promises)
    return inline_cached(_update, (at.array, at.index, how, values), promises)


def _update(x: Any, index: Any, how: str, values: Any, **promises: Unpack[Promises]) -> Any:
    if type(values) is int:
        check_fits(values, aval_of(x).dtype)
    values = _as_values(how, values)
    _warn_of_cast(how, aval_of(x), values)
    mask = _lone_mask(index)
    if mask is not None and aval_of(values).ndim == 0 and mask.shape == x.shape[: mask.ndim]:
        return _chooser(how)(x, values, mask)
    rules, options = _settings_of(promises, reading=False)
    plan, leaves = plan_of(index, x.aval.shape, rules)
    return _writer(how, plan, options)(x, values, *leaves)


def _applied(at: AtIndex, func: Callable[[Any], Any], promises: Promises) -> Any:
    if not callable(func):
        raise TypeError(f"x.at[index].apply takes a function, got {type(func).__name__}; to set a value use .set")
    rules, options = _settings_of(promises)
    plan, leaves = plan_of(at.index, at.array.aval.shape, rules)
    if options.unique_indices or plan.unique:
        return at.set(func(_reader(plan, options, None)(at.array, *leaves)), **promises)

    def apply(x: Any, *leaves: Any) -> Any:
        return operations.apply(x, func, plan, leaves, options)

    return (jit(apply) if state.builder is None else apply)(at.array, *leaves)


def _read(at: AtIndex, fill_value: Any, out_sharding: Any, promises: Promises) -> Any:
    if out_sharding is not None:
        return in_sharding(out_sharding, AtIndex.get, at, fill_value=fill_value, **promises)
    return inline_cached(_get, (at.array, at.index, fill_value), promises)


def _get(x: Any, index: Any, fill_value: Any, **promises: Unpack[Promises]) -> Any:
    rules, options = _settings_of(promises)
    if fill_value is not None:
        options = options._replace(fill_value=_number(fill_value))
    plan, leaves = plan_of(index, x.aval.shape, rules)
    return _reader(plan, options, exact_key(options.fill_value))(x, *leaves)


def _number(fill_value: Any) -> Any:
    if type(fill_value) in PYTHON_SCALARS:
        return fill_value
    if not hasattr(fill_value, "item"):
        raise TypeError(
            f"x.at[index].get: fill_value must be a number, got {fill_value!r} of type {type(fill_value).__name__}"
        )
    return fill_value.item()


def _settings_of(promises: Promises, reading: bool = True) -> tuple[Rules, IndexOptions]:
    """The indexing rules and the options of gather and scatter; most often the caller promises nothing."""
    return _settings(reading, **promises) if promises else _usual[state.builder is None, reading]


def _settings(
    reading: bool,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
    wrap_negative_indices: bool = True,
) -> tuple[Rules, IndexOptions]:
    known = None if mode is None else GatherScatterMode.from_any(mode)
    clip = known in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)
    rules = Rules(state.builder is None, known is None, wrap_negative_indices, clip, reading)
    return rules, IndexOptions(known, None, indices_are_sorted, unique_indices)


_usual = {
    (eager, reading): (Rules(eager, reading=reading), IndexOptions())
    for eager in (True, False)
    for reading in (True, False)
}


def _lone_mask(index: Any) -> Any:
    """The boolean array that is all of the index, or None."""
    lone: Any = index[0] if type(index) is tuple and len(index) == 1 else index
    return lone if type(lone) in _ARRAYS and lone.dtype == np.bool_ and lone.ndim else None


def _as_values(how: str, values: Any) -> Any:
    if type(values) in PYTHON_SCALARS:
        return values
    if isinstance(values, list | tuple):
        values = asarray(values)
    return check_operands(f"x.at[index].{how}", [values])[0]


def _warn_of_cast(how: str, x: ShapedArray, values: Any) -> None:
    if getattr(values, "dtype", None) is x.dtype:
        return
    if result_type(x.dtype, values) != x.dtype:
        warnings.warn(
            f"x.at[index].{how}: values of dtype {aval_of(values).dtype} are cast to {x.dtype}, the dtype of x, "
            "which loses precision or range, and may become an error; convert x or the values with .astype",
            FutureWarning,
            user_stacklevel(),
        )


# --- programs


def _program(factory: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
    """Decorator: `factory`'s function for some options, inlined while tracing, or else compiled and cached."""

    @memoised(f"program: x.at, {factory.__name__.strip('_')}", _PROGRAMS)
    def compiled(*options: Any) -> Callable[..., Any]:
        return jit(factory(*options))

    return lambda *options: (compiled if state.builder is None else factory)(*options)


@_program
# a key that knows -0.0
def _reader(plan: IndexPlan, options: IndexOptions, fill_value: Hashable) -> Callable[..., Any]:
    return lambda x, *leaves: operations.get(x, plan, leaves, options)


@_program
def _writer(how: str, plan: IndexPlan, options: IndexOptions) -> Callable[..., Any]:
    def update(x: Any, values: Any, *leaves: Any) -> Any:
        return _performed(x, values, how, lambda x, v, how: operations.update(x, v, plan, leaves, how, options))

    return update


@_program
def _chooser(how: str) -> Callable[..., Any]:
    def update(x: Any, value: Any, mask: Any) -> Any:
        return _performed(x, value, how, lambda x, v, how: _chosen(x, v, mask, how))

    return update


def _performed(x: Any, values: Any, how: str, write: Write) -> Any:
    if how not in _WITH_FACTORS:
        return write(x, values, how)
    factors = write(full(aval_of(x), 1), values, "multiply")
    return _WITH_FACTORS[how](x, factors)


def _chosen(x: Any, value: Any, mask: Any, how: str) -> Any:
    """The update where the mask holds, `x` otherwise."""
    aval = aval_of(x)
    dtype = aval.dtype if how == "set" else result_type(x, value)
    old, value = in_dtype(x, dtype), in_dtype(value, dtype)
    holds = broadcast_in_dim(mask, aval.shape, range(aval_of(mask).ndim))
    return in_dtype(where(holds, UPDATES[how].combine(old, value), old), aval.dtype, aval.weak_type)
