"""Composites: functions of the public faces that are made of several operations.

Called eagerly, a composite is one compiled program and one dispatch. While something is traced its operations are
inlined, so that programs stay flat and tracing stays cheap.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xlamini.core.edges import trim
from xlamini.core.tracer import state
from xlamini.transforms.jit import jit

F = TypeVar("F", bound=Callable[..., Any])


def composite(*, static: Sequence[str] = ()) -> Callable[[F], F]:
    """Decorator for a function of arrays; those in `static` reach it as they are, lists among them as tuples."""
    return lambda fun: _composite(fun, tuple(static))


def _composite(fun: Any, static: tuple[str, ...]) -> Any:
    compiled: Any = None

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.builder is not None:
            return fun(*args, **kwargs)
        nonlocal compiled
        if compiled is None:  # made when first needed: there are hundreds of composites, and a program calls a few
            compiled = jit(fun, static_argnames=static)
        try:
            return compiled(*args, **kwargs)
        except Exception as error:
            hashable = _with_tuples(fun, static, args, kwargs)
            if hashable is None:
                trim(error)
                raise
        return compiled(*hashable.args, **hashable.kwargs)

    return call


def _with_tuples(fun: Any, static: Sequence[str], args: Any, kwargs: Any) -> inspect.BoundArguments | None:
    """The call with tuples for lists among its static arguments, which are then hashable; None without any."""
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except TypeError:
        return None
    lists = {name: bound.arguments[name] for name in static if isinstance(bound.arguments.get(name), list)}
    bound.arguments.update({name: _frozen(value) for name, value in lists.items()})
    return bound if lists else None


def _frozen(x: Any) -> Any:
    """A list as a tuple, so that it can be part of a signature."""
    return tuple(map(_frozen, x)) if isinstance(x, list) else x
