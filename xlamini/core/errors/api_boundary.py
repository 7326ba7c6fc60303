"""Traceback filtering at the API boundary.

An error is raised deep inside the library; its traceback is trimmed to the user's frames where it leaves the library.
The flag `traceback_filtering` (or XLAMINI_TRACEBACK_FILTERING=off) turns that off.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

from xlamini.core import hooks
from xlamini.core.errors.error_page import name_the_page
from xlamini.core.errors.frames import is_of_library
from xlamini.core.errors.missing_names import public_dir
from xlamini.core.errors.stray_errors import name_the_call
from xlamini.core.flags.config import Flag, traceback_filtering
from xlamini.core.pytree.flattening import find_lost_levels
from xlamini.core.wrapping import renamed, with_globals, with_own_code

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


_edged: weakref.WeakSet[Any] = weakref.WeakSet()


def is_api_boundary(fun: F) -> F:
    """Decorator for a function that calls `trim` itself, which saves a Python call."""
    _edged.add(fun)
    return fun


def api_boundary(fun: Callable[P, R]) -> Callable[P, R]:
    """Decorator for public functions: errors leave them without the library's frames."""
    if fun in _edged:
        return fun
    made: Any = functools.update_wrapper(with_globals(_at_edge, fun=fun), fun)
    return is_api_boundary(made)


fun: Any = None
"""In the globals of a decorated function: what it wraps."""


def _at_edge(*args: Any, **kwargs: Any) -> Any:
    try:
        return fun(*args, **kwargs)
    except Exception as error:
        trim(error)
        raise


def api_boundary_methods(cls: type) -> None:
    """Decorate the public methods and class methods of a class with `api_boundary`."""
    for name, member in list(vars(cls).items()):
        if not name.startswith("__") and name.startswith("_"):
            continue
        if type(member) is FunctionType:
            setattr(cls, name, _method(member))
        elif type(member) is classmethod:
            setattr(cls, name, classmethod(_method(member.__func__)))


def _method(member: Any) -> Any:
    return with_own_code(api_boundary(member), f"{member.__module__}.{member.__qualname__}")


def edge_of_face(namespace: dict[str, Any]) -> None:
    """Decorate the functions that a public module names; the library itself calls the undecorated ones.

    A module that also holds what it is made of says in `__all__` which names are public. `dir` lists these, and the
    error about any other name says what may be meant.
    """
    names = namespace.get("__all__", [name for name in namespace if not name.startswith("_")])
    for name in names:
        make_edge(namespace, name)
    missing, listed = public_dir(namespace["__name__"], names)
    namespace.setdefault("__getattr__", missing)
    namespace.setdefault("__dir__", listed)


def make_edge(namespace: dict[str, Any], name: str) -> None:
    """Decorate a public module's member `name`, if it is a function."""
    member = namespace.get(name)
    if type(member) is FunctionType and not name.startswith("_"):
        namespace[name] = _public(member, namespace["__name__"], name)


def _public(fun: FunctionType, module: str, name: str) -> Any:
    """The decorated function, one for all modules that export it, pickled under its public name.

    An alias of `numpy` or `tree` is a function of its own, as in JAX: tables of functions are made by their names.
    """
    face = module.partition(".")[2]  # a module is called as JAX's where the library answers for it
    own = fun.__name__.strip("_") == name.strip("_") or not face.startswith(("numpy", "tree"))
    key = fun if own else (fun, name)
    known = _edges.get(key)
    if known is None:
        edge = api_boundary(hooks.public_function(fun))
        made: Any = with_own_code(edge if key is fun else is_api_boundary(renamed(edge, name)), f"{module}.{name}")
        made.__module__, made.__qualname__ = module, name
        known = _edges.setdefault(key, made)  # another thread may have been first
        _edges[known] = known
    return known


_edges: dict[Any, Any] = {}


def trim(error: BaseException) -> None:
    """Explain an error, name the call if Python itself raised it, and drop the library's frames from its traceback.

    An error of the library also gets the note that names its place in the documentation.
    """
    find_lost_levels()
    hooks.explain_error(error)
    name_the_call(error)
    name_the_page(error)
    if traceback_filtering.value != "off":
        error.__traceback__ = _of_user(error.__traceback__)


def _of_user(traceback: TracebackType | None) -> TracebackType | None:
    frames = []
    while traceback is not None:
        if not is_of_library(traceback.tb_frame):
            frames.append(traceback)
        traceback = traceback.tb_next
    kept = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


Flag.__call__ = api_boundary(Flag.__call__)  # here, as this module reads a flag
