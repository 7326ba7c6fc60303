"""Indexing: x[index], iteration and len on arrays and traced values.

Called eagerly, an index becomes a plan and some numbers, and one compiled program serves every index of that plan. A
concrete number, in the program or in an array on the host, must be in bounds: IndexError. One computed only at run time
is clamped by x[index]; so is every one where flag `check_static_indices` is off.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from xlamini.core import Tracer, api_boundary_methods, inline_cached, memoised
from xlamini.core.caching.call_cache import EAGER
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.flags.jax_flags import check_static_indices
from xlamini.core.tracing.state import state
from xlamini.numpy.indexing.at import At, AtIndex
from xlamini.numpy.indexing.operations import get
from xlamini.numpy.indexing.parse import GREATEST_OPERAND, is_on_cpu, out_of_bounds, plan_of, settled_items
from xlamini.numpy.indexing.plan import IndexPlan, Points, Rules
from xlamini.primitives import index_in_dim, reshard_as, squeeze
from xlamini.primitives.indexing.dynamic_slice import dynamic_index_in_dim
from xlamini.primitives.shape.concatenate import split
from xlamini.runtime import ArrayImpl, device_put_value
from xlamini.runtime.arrays.to_host import to_numpy
from xlamini.staging import jit

_EAGER, _STAGED = Rules(eager=True), Rules(eager=False)
_PROGRAMS = 4096
_UNSTACKED_AT_ONCE = 16


def getitem(x: Any, index: Any) -> Any:
    """`x[index]`, in NumPy's notation."""
    if state.builder is not None:
        return inline_cached(_staged, (x, index), {})
    if type(index) is int:
        row = _checked_row(index, x.aval.shape)
        if row <= GREATEST_OPERAND:
            return _row(x, row)
    if type(index) is ArrayImpl and not index.aval.shape and index.aval.dtype.kind == "i" and is_on_cpu(index):
        return getitem(x, to_numpy(index).item())
    plan, leaves = plan_of(index, x.aval.shape, _EAGER)
    if _has_mask(plan) and type(x) is ArrayImpl and is_on_cpu(x):
        return _picked_on_host(x, index)
    return _reader(plan)(x, *leaves)


def _staged(x: Any, index: Any) -> Any:
    return get(x, *plan_of(index, x.aval.shape, _STAGED))


setattr(_staged, EAGER, getitem)


def _checked_row(index: int, shape: tuple[int, ...]) -> int:
    if not shape:
        raise IndexError("too many indices: an array of shape () has 0 axes, but 1 are indexed; x[()] is its value")
    size = shape[0]
    if -size <= index < size:
        return index + size if index < 0 else index
    if check_static_indices.value or not size:
        raise out_of_bounds(index, 0, size)
    return 0 if index < 0 else size - 1


@jit
def _row(x: Any, index: Any) -> Any:
    return dynamic_index_in_dim(x, index, 0, keepdims=False, allow_negative_indices=False)


@memoised("program: indexing", _PROGRAMS)
def _reader(plan: IndexPlan) -> Callable[..., Any]:
    """The program that reads by this plan."""

    def getitem(x: Any, *leaves: Any) -> Any:
        return get(x, plan, leaves)

    return jit(getitem)


def _has_mask(plan: IndexPlan) -> bool:
    return any(type(e) is Points and not e.wrap for e in plan.entries)


def _picked_on_host(x: ArrayImpl, index: Any) -> ArrayImpl:
    """Select by a mask on the host: the result can have any size, and a program is compiled for one size."""
    items = [to_numpy(i) if type(i) is ArrayImpl else i for i in settled_items(index)]
    picked = np.asarray(to_numpy(x)[tuple(items)])
    aval = x.aval.update(shape=picked.shape)
    return device_put_value(picked, x._sharding, committed=x._committed, aval=aval)


# --- iteration

def iterate(x: Any) -> Iterator[Any]:
    """The elements of `x` along its first axis; TypeError for an array that has none."""
    shape = x.aval.shape
    if not shape:
        raise TypeError("iteration over a 0-d array: it has no axis; write x.item() for its number")
    if state.builder is not None:
        return (index_in_dim(x, i, 0, keepdims=False) for i in range(shape[0]))
    x = _whole_along_first(x)
    if 0 < shape[0] <= _UNSTACKED_AT_ONCE:
        return iter(_unstacked(x))
    return (_row(x, i) for i in range(shape[0]))


def _whole_along_first(x: ArrayImpl) -> ArrayImpl:
    """Reshard an array that is split along its first axis, so that every device has that axis whole."""
    how = x.aval.explicit_sharding
    if how is None or not how.entries[0]:
        return x
    return reshard_as(x, how.with_entries(((), *how.entries[1:])))


@jit
def _unstacked(x: Any) -> list[Any]:
    return [squeeze(part, (0,)) for part in split(x, (1,) * x.shape[0])]


def _length(x: Tracer) -> int:
    if not x.aval.shape:
        raise TypeError("len() of unsized object: a traced value of shape () has no axis to count")
    return x.aval.shape[0]


# --- what arrays and traced values are given


def install_indexing() -> None:
    """Give arrays and traced values `x[index]`, `x.at`, and iteration."""
    members = {"__getitem__": api_boundary(getitem), "__iter__": api_boundary(iterate), "at": property(At)}
    for kind, own in ((ArrayImpl, {}), (Tracer, {"__len__": _length})):
        for name, member in (members | own).items():
            setattr(kind, name, member)


install_indexing()
api_boundary_methods(AtIndex)
