"""Composites: public functions made of several operations.

Called eagerly, a composite is one compiled program and one dispatch. While tracing, its operations are inlined, so that
programs stay flat; a second call of the same kind copies the equations of the first, so that tracing stays cheap.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from xlamini.core import canonicalize_dtype, hooks, tree_leaves, tree_map, trim
from xlamini.core.api_boundary import is_api_boundary
from xlamini.core.call_cache import EAGER
from xlamini.core.dtypes import fits
from xlamini.core.state import state
from xlamini.primitives import stands_for_array
from xlamini.runtime import ArrayImpl
from xlamini.runtime.dispatch_errors import Explain, guarded
from xlamini.staging.run.jit import dispatched

F = TypeVar("F", bound=Callable[..., Any])


def is_composite(fun: Callable[..., Any]) -> bool:
    """Whether a function is a composite: what it adds to a program depends on its arguments and on flags alone."""
    return getattr(getattr(fun, "__wrapped__", None), EAGER, None) is fun


def composite(*, static: Sequence[str] = ()) -> Callable[[F], F]:
    """Decorator for a function of arrays; arguments in `static` are passed unchanged, but for lists as tuples."""
    return lambda fun: _composite(fun, tuple(static))


def _composite(fun: Any, static: tuple[str, ...]) -> Any:
    compiled: Any = None
    explain: Explain = _as_it_is

    @is_api_boundary
    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal compiled, explain
        try:
            if state.builder is not None:
                return hooks.trace_library_call(fun, args, kwargs)
            if int in map(type, args) and beyond_dtypes(args):
                return fun(*args, **kwargs)
            if compiled is None:  # on first use: there are hundreds of composites, and a program calls a few
                compiled, explain = dispatched(fun, static)
            return compiled(*args, **kwargs)
        except Exception as error:  # in place of `edge`, which would cost one more call
            acceptable = _acceptable(fun, static, args, kwargs) if state.builder is None else None
            if acceptable is None:
                try:
                    explain(error, args, kwargs)
                except Exception as explained:
                    trim(explained)
                    raise
                trim(error)
                raise
        return guarded(compiled, explain)(*acceptable.args, **acceptable.kwargs)

    setattr(fun, EAGER, call)
    return call


def beyond_dtypes(args: Sequence[Any]) -> bool:
    """Whether an int is beyond the dtype of an array beside it, or beyond Python ints in programs.

    In a compiled call it would be an array of that dtype, wrapped around; an operation of its own gets its value.
    """
    numbers = [x for x in args if type(x) is int and not 0 <= x < 128]
    if not numbers:
        return False
    dtypes = {x.dtype for x in tree_leaves(args) if isinstance(x, ArrayImpl | np.ndarray)}
    return any(not fits(x, dtype) for dtype in (*dtypes, canonicalize_dtype(int)) for x in numbers)


def _as_it_is(error: Exception, args: Any, kwargs: Any) -> None:
    """Explain nothing: while tracing, errors are raised unchanged."""


def _acceptable(fun: Any, static: Sequence[str], args: Any, kwargs: Any) -> inspect.BoundArguments | None:
    """The call with static lists as tuples, which can be hashed, and objects with `__jax_array__` as arrays.

    None if nothing is to be changed.
    """
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except TypeError:
        return None
    given = bound.arguments
    new = {name: _frozen(given[name]) for name in static if not _is_hashable(given.get(name))}
    for name, value in given.items():
        if name not in static and any(map(stands_for_array, tree_leaves(value, is_leaf=stands_for_array))):
            new[name] = tree_map(_as_array, value, is_leaf=stands_for_array)
    given.update(new)
    return bound if new else None


def _as_array(x: Any) -> Any:
    return x.__jax_array__() if stands_for_array(x) else x


def _is_hashable(x: Any) -> bool:
    if isinstance(x, tuple):
        return all(map(_is_hashable, x))
    return isinstance(x, Hashable)


def _frozen(x: Any) -> Any:
    """A list or an ndarray (of axes, for example) as a tuple, which can be part of a signature."""
    if isinstance(x, np.ndarray):
        return _frozen(x.tolist())
    return tuple(map(_frozen, x)) if isinstance(x, tuple) or _is_unhashable_sequence(x) else x


def _is_unhashable_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, Hashable)
