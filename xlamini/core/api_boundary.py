"""The edge between the user's program and the library: tracebacks show the user's frames, not ours.

An error is raised deep inside, in terms of what went wrong; its traceback is trimmed where it leaves the library. Set
the flag `traceback_filtering` to "off" (or XLAMINI_TRACEBACK_FILTERING=off) to see everything.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import FrameType, FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

from xlamini.core.config import traceback_filtering
from xlamini.core.provenance import hidden_files

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


_edged: weakref.WeakSet[Any] = weakref.WeakSet()


def is_edge(fun: F) -> F:
    """Decorator for a function that calls `trim` by itself, which saves a call."""
    _edged.add(fun)
    return fun


def edge(fun: Callable[P, R]) -> Callable[P, R]:
    """Decorator for what users call: errors leave it without the library's frames."""
    if fun in _edged:
        return fun

    @is_edge
    @functools.wraps(fun)
    def at_edge(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return at_edge


def edge_methods(cls: type) -> None:
    """Make the methods of a class that users call edges, those of the class itself too."""
    for name, member in list(vars(cls).items()):
        if not name.startswith("__") and name.startswith("_"):
            continue
        if type(member) is FunctionType:
            setattr(cls, name, edge(member))
        elif type(member) is classmethod:
            setattr(cls, name, classmethod(edge(member.__func__)))


def edge_of_face(namespace: dict[str, Any]) -> None:
    """Make the functions that a public module names edges; the library's own calls go to what is beneath them.

    A module that also holds what it is made of says in `__all__` which names are public.
    """
    for name in namespace.get("__all__", list(namespace)):
        make_edge(namespace, name)


def make_edge(namespace: dict[str, Any], name: str) -> None:
    """Make what a public module calls `name` an edge, if it is a function."""
    member = namespace.get(name)
    if type(member) is FunctionType and not name.startswith("_"):
        namespace[name] = _public(member, namespace["__name__"], name)


def _public(fun: FunctionType, module: str, name: str) -> Any:
    """The edge of a function, one however many faces it has, which pickle finds under its public name."""
    known = _edges.get(fun)
    if known is None:
        made = edge(fun)
        made.__module__, made.__qualname__ = module, name
        known = _edges.setdefault(fun, made)  # another thread may have been first
        _edges[known] = known
    return known


_edges: dict[Any, Any] = {}


Explain = Callable[[BaseException], None]
_explanations: list[Explain] = []


def install_explanation(explain: Explain) -> None:
    """Have `explain(error)` called for every error that leaves the library; it may say in it what lies behind."""
    _explanations.append(explain)


def trim(error: BaseException) -> None:
    """Take the library's frames out of an error's traceback, and let it say what lies behind it."""
    for explain in _explanations:
        explain(error)
    if traceback_filtering.value != "off":
        error.__traceback__ = _of_user(error.__traceback__)


def _of_user(traceback: TracebackType | None) -> TracebackType | None:
    frames = []
    while traceback is not None:
        if not _is_ours(traceback.tb_frame):
            frames.append(traceback)
        traceback = traceback.tb_next
    kept = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame is the library's: its code is, or was made for a module of it, as a dataclass's `__init__`."""
    file = frame.f_code.co_filename
    return hidden_files[frame.f_globals.get("__file__", file) if file == "<string>" else file]
