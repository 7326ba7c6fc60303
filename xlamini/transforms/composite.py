"""Composites: functions of the public faces that are made of several operations.

Called eagerly, a composite is one compiled program and one dispatch. While something is traced its operations are
inlined, so that programs stay flat and tracing stays cheap.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xlamini.core.edges import trim
from xlamini.core.tracer import state
from xlamini.transforms.jit import jit

F = TypeVar("F", bound=Callable[..., Any])


def composite(*, static: Sequence[str] = ()) -> Callable[[F], F]:
    """Decorator for a function of arrays; arguments named in `static` reach it as they are, lists among them as
    tuples.
    """
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
            frozen = tuple(map(_frozen, args)), {k: _frozen(v) for k, v in kwargs.items()}
            if frozen == (args, kwargs):
                trim(error)
                raise
        return compiled(*frozen[0], **frozen[1])

    return call


def _frozen(x: Any) -> Any:
    """A list as a tuple, so that it can be part of a signature."""
    return tuple(map(_frozen, x)) if isinstance(x, list) else x
