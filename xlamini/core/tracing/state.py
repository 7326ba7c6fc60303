"""The tracing state of a thread: the active builder and the name scopes."""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class _TracingState(threading.local):
    """The builder that equations go to, None for eager execution; the names of `named_scope`, and the named axes.

    Both are outermost first.
    """

    builder: Any = None  # a `Builder`, whose module imports this one
    scope: tuple[str, ...] = ()
    axes: tuple[Any, ...] = ()  # of `Axis`, from named_axes.py; what is traced may depend on them


state: Final = _TracingState()


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Put the equations made inside under `name` in provenance, StableHLO locations and profiles.

    >>> def loss(x):
    ...     with named_scope("penalty"):
    ...         return x * x
    >>> "penalty" in xlamini.jit(loss).lower(1.0).as_text(debug_info=True)
    True
    """
    before, state.scope = state.scope, (*state.scope, name)
    try:
        yield
    finally:
        state.scope = before


def named_call(fun: F, *, name: str | None = None) -> F:
    """The function with its operations under its name, or `name`, in profiles and StableHLO; see `named_scope`.

    >>> @xlamini.named_call
    ... def layer(x):
    ...     return 2 * x
    >>> layer(3)
    6
    """
    if not callable(fun):
        raise TypeError(f"named_call takes a function, got {fun!r} of type {type(fun).__name__}")
    scope = getattr(fun, "__name__", type(fun).__name__) if name is None else name

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return cast(F, call)
