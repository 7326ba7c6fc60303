"""The check that arguments are sparse arrays, where a function's annotations say so."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from xlamini.core.errors.api_boundary import api_boundary

P = ParamSpec("P")
R = TypeVar("R")
_FORMATS = ("BCOO", "BCSR", "COO | CSR")


def takes_sparse(fun: Callable[P, R]) -> Callable[P, R]:
    """Decorator: TypeError for an argument that is annotated as a sparse array, or as a sequence of them, and is none.
    """
    names = list(inspect.signature(fun).parameters)
    texts = {name: fun.__annotations__[name] for name in names}
    wanted = {name: kind for name, text in texts.items() if (kind := _member(text)) in _FORMATS}
    sequences = {name for name in wanted if wanted[name] != texts[name]}

    @api_boundary
    @functools.wraps(fun)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if name in sequences:
                _check_members(fun.__name__, name, value, wanted[name])
            elif name in wanted:
                _check(fun.__name__, name, value, wanted[name])
        return fun(*args, **kwargs)

    return checked


def _member(annotation: str) -> str:
    return annotation.removeprefix("Sequence[").removesuffix("]")


def _check_members(caller: str, name: str, values: Any, kind: str) -> None:
    if not isinstance(values, list | tuple):
        raise TypeError(f"{caller}: {name} must be a list of {kind}, got {type(values).__name__}")
    for value in values:
        _check(caller, f"a member of {name}", value, kind)


def _check(caller: str, name: str, value: Any, kind: str) -> None:
    if not any(base.__name__ in kind.split(" | ") for base in type(value).__mro__):
        raise TypeError(f"{caller}: {name} must be a {kind}, got {type(value).__name__}; make one with .fromdense")
