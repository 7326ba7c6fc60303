"""What wraps a function: `functools.wraps` for callables of any kind, and functions whose code can be replaced.

Libraries that quantize or trace models replace the code of public functions, `lax.dot_general.__code__ = …`, so that
every module that has imported one calls theirs. Python allows it between functions with equally many free variables, so
a public function has none: what it wraps is among its globals.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def with_globals(template: Any, **names: Any) -> FunctionType:
    """A function with the code of `template`, to which `names` are globals: a closure without free variables."""
    return FunctionType(template.__code__, {**_globals_of(template), **names})


def _globals_of(template: FunctionType) -> dict[str, Any]:
    """The globals that the template refers to or sets, and the builtins, which imports from C look for there."""
    space = template.__globals__
    return {name: space[name] for name in ("__builtins__", *template.__code__.co_names) if name in space}


def with_own_code(made: FunctionType, name: str) -> FunctionType:
    """The function, with code that equals that of no other one, and with Python's caches of globals to itself."""
    code: CodeType = made.__code__
    made.__code__ = code.replace(co_name=name.rpartition(".")[2], co_consts=(*code.co_consts, name))
    return made


def renamed(fun: FunctionType, name: str) -> FunctionType:
    """The function under another name."""
    made = FunctionType(fun.__code__, fun.__globals__, name, fun.__defaults__, fun.__closure__)
    made.__doc__, made.__annotations__, made.__kwdefaults__ = fun.__doc__, fun.__annotations__, fun.__kwdefaults__
    vars(made).update(vars(fun))
    return made


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


def named_as(declaration: Callable[..., Any]) -> Callable[[F], F]:
    """Give a function the name and the documentation of a declaration; its parameters are its own.

    So the functions of a family, which differ in a name and an operation, state their parameters once.
    """
    def named(made: F) -> F:
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(made, name, getattr(declaration, name))
        return made

    return named


def name_as_partial(made: Any, fun: functools.partial[Any]) -> None:
    """Give what was made of a `functools.partial`, which has no name, the name of its function."""
    inner: Any = fun
    while isinstance(inner, functools.partial):
        inner = inner.func
    for name in ("__name__", "__qualname__"):
        if isinstance(getattr(inner, name, None), str):
            setattr(made, name, getattr(inner, name))
