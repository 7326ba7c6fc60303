"""wraps: `functools.wraps` for callables of any kind, whose names may be no strings."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def wraps(fun: Callable[..., Any]) -> Callable[[F], F]:
    """Give a function the name and the documentation of `fun`, as far as it has them.

    A library may give its objects placeholders for names, as equinox does where a module went through `jit`.
    """
    named = [a for a in functools.WRAPPER_ASSIGNMENTS if isinstance(getattr(fun, a, None), str | dict | tuple | None)]

    def wrapped(made: F) -> F:
        functools.update_wrapper(made, fun, named)
        if isinstance(fun, functools.partial):
            name_as_partial(made, fun)
        return made

    return wrapped


def name_as_partial(made: Any, fun: functools.partial[Any]) -> None:
    """Give what was made of a `functools.partial`, which has no name, the name of its function."""
    inner: Any = fun
    while isinstance(inner, functools.partial):
        inner = inner.func
    for name in ("__name__", "__qualname__"):
        if isinstance(getattr(inner, name, None), str):
            setattr(made, name, getattr(inner, name))
