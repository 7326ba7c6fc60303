"""Composites: functions of the public faces that are made of several operations.

Called eagerly, a composite is one compiled program and one dispatch. While something is traced its operations are
inlined, so that programs stay flat, and copied from the first call of the same kind, so that tracing stays cheap.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from xlamini.core.api_boundary import is_edge, trim
from xlamini.core.call_cache import repeated
from xlamini.core.pytree import tree_leaves, tree_map
from xlamini.core.tracer import state
from xlamini.primitives.promotion import stands_for_array
from xlamini.staging.run.call_errors import Explain, guarded
from xlamini.staging.run.jit import dispatched

F = TypeVar("F", bound=Callable[..., Any])


def composite(*, static: Sequence[str] = ()) -> Callable[[F], F]:
    """Decorator for a function of arrays; those in `static` reach it as they are, lists among them as tuples."""
    return lambda fun: _composite(fun, tuple(static))


def _composite(fun: Any, static: tuple[str, ...]) -> Any:
    compiled: Any = None
    explain: Explain = _as_it_is

    @is_edge
    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal compiled, explain
        try:
            if state.builder is not None:
                return repeated(fun, args, kwargs)
            if compiled is None:  # made when first needed: there are hundreds of composites, and a program calls a few
                compiled, explain = dispatched(fun, static)
            return compiled(*args, **kwargs)
        except Exception as error:  # caught here and not by `edge`, which would cost a call more
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

    return call


def _as_it_is(error: Exception, args: Any, kwargs: Any) -> None:
    """What there is to say of an error while tracing."""


def _acceptable(fun: Any, static: Sequence[str], args: Any, kwargs: Any) -> inspect.BoundArguments | None:
    """The call with tuples for lists among its static arguments, which are then hashable, and arrays for objects that
    stand for them; None if there is nothing to change.
    """
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except TypeError:
        return None
    given = bound.arguments
    new = {name: _frozen(given[name]) for name in static if not _is_hashable(given.get(name))}
    for name, value in given.items():
        if name not in static and any(map(stands_for_array, tree_leaves(value))):
            new[name] = tree_map(lambda x: x.__jax_array__() if stands_for_array(x) else x, value)
    given.update(new)
    return bound if new else None


def _is_hashable(x: Any) -> bool:
    if isinstance(x, tuple):
        return all(map(_is_hashable, x))
    return not isinstance(x, list | np.ndarray)


def _frozen(x: Any) -> Any:
    """A list as a tuple, so that it can be part of a signature; and an ndarray, such as one of axes."""
    if isinstance(x, np.ndarray):
        return _frozen(x.tolist())
    return tuple(map(_frozen, x)) if isinstance(x, list | tuple) else x
