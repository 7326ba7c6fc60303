"""Whether a function is pure while it is traced: what it writes outside of itself, and what it asks of the world.

A traced function runs once, and its program many times. So what it writes to a global, a list or an object happens
once; what it draws from `random` or reads from a clock becomes a constant. The function is traced twice under a
profiler that sees every built-in function that it calls, and both programs are compared.
"""
from __future__ import annotations

import builtins
import datetime
import difflib
import inspect
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.caching.memo import paused_gc
from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.errors.frames import definition, is_hidden, own_files
from xlamini.staging.run.jit.make_jaxpr import make_jaxpr
from xlamini.staging.trace.reachable_state import Reached, fingerprint, is_library, is_written, reached_from

_HARMLESS = ("logging", "warnings", "linecache")
"""Standard modules whose own use of clocks and files does not change a program."""


class Impurity(NamedTuple):
    """Something that happens once, when the function is traced, and not when its program runs."""

    kind: str
    what: str
    file: str
    line: int
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.what}\n    {self.fix}"


class Purity(NamedTuple):
    """The answer of `check_pure`: true if nothing was found."""

    found: list[Impurity]
    difference: str

    def __bool__(self) -> bool:
        return not self.found and not self.difference

    def __repr__(self) -> str:
        parts = [*map(str, self.found)]
        if self.difference:
            parts.append(f"two traces differ, so the program depends on when it is traced:\n{self.difference}")
        return "\n".join(parts) or "pure: two traces are equal, and nothing outside of the function was written"

    def as_dict(self) -> dict[str, Any]:
        return {"found": [impurity._asdict() for impurity in self.found], "difference": self.difference}


def check_pure(f: Callable[..., Any]) -> Callable[..., Purity]:
    """A function that says what `f` does beside computing its result, which a traced function does once only.

    The result takes the arguments of `f`, traces it twice and runs nothing. It finds writes to globals, to variables of
    enclosing functions, and to lists, dicts, sets and objects from outside; random numbers, clocks, `print`, `input`
    and files; and programs that differ from trace to trace. New entries of a dict, as of a cache, are no writes unless
    they hold traced values.

    >>> seen = []
    >>> def f(x):
    ...     seen.append(1)
    ...     return 2 * x
    >>> xlamini.debug.check_pure(f)(1.0).found[0].what
    "list 'seen'"
    """

    @api_boundary
    def check(*args: Any, **kwargs: Any) -> Purity:
        watch = _Watch()
        first = _text(f, args, kwargs, watch)
        try:
            second = _text(f, args, kwargs, watch)
        except UnexpectedTracerError as error:  # it kept a traced value of the first trace
            second = str(error).splitlines()
        difference = "\n".join(difflib.unified_diff(first, second, "first trace", "second trace", lineterm="", n=1))
        return Purity([*watch.calls.values(), *watch.writes.values()], difference)

    return check


def _text(f: Callable[..., Any], args: Any, kwargs: Any, watch: _Watch) -> list[str]:
    """The program of a new trace, as lines of text."""

    def again(*xs: Any, **named: Any) -> Any:
        return f(*xs, **named)

    with watch.watching(f):
        jaxpr = make_jaxpr(again)(*args, **kwargs)
    return str(jaxpr).splitlines()


class _Watch:
    """What functions of the user that run in this thread call and write."""

    def __init__(self) -> None:
        self.calls: dict[Any, Impurity] = {}
        self.writes: dict[Any, Impurity] = {}

    @contextmanager
    def watching(self, f: Callable[..., Any]) -> Iterator[None]:
        reached = [(r, fingerprint(r.read())) for r in reached_from(f)]
        drawn = _numpy_state()
        profiler = sys.getprofile()
        with paused_gc():  # its callbacks, which may read clocks, and finalizers are not calls of the user's
            sys.setprofile(self._event)
            try:
                yield
            finally:
                sys.setprofile(profiler)
        for r, before in reached:
            if is_written(before, fingerprint(r.read())):
                self.writes.setdefault((r.file, r.name), _write(r))
        if _numpy_state() != drawn:  # NumPy's functions are compiled, and no profiler sees them
            kind, name, fix = NUMPY_RANDOM
            self.calls.setdefault(name, Impurity(kind, name, *definition(inspect.unwrap(f)), fix))

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        if event != "c_call":
            return
        impurity = impurity_of(arg)
        user = None if impurity is None else _caller(frame)
        if impurity is not None and user is not None:
            file, line = user.f_code.co_filename, user.f_lineno
            found = Impurity(impurity.kind, impurity.name, file, line, impurity.fix)
            self.calls.setdefault((file, line, impurity.kind), found)


def _numpy_state() -> Any:
    """The state of NumPy's global random numbers."""
    state: Any = np.random.get_state(legacy=False)
    return state["state"]["key"].tobytes(), state["state"]["pos"], state["has_gauss"]


def _write(reached: Reached) -> Impurity:
    value = reached.read()
    kind = type(value).__name__ if isinstance(value, list | dict | set) or hasattr(value, "__dict__") else "variable"
    fix = (
        "It happens when the function is traced, not when its program runs: take the value as an argument, and return "
        "it."
    )
    return Impurity("a write", f"{kind} '{reached.name}'", reached.file, reached.line, fix)


def _caller(frame: FrameType | None) -> FrameType | None:
    """The user's frame that a built-in was called from; None if xlamini or a harmless module called it."""
    while frame is not None and (is_hidden(frame) or is_library(_module(frame))):
        if own_files[frame.f_code.co_filename] or _module(frame).startswith(_HARMLESS):
            return None
        frame = frame.f_back
    return frame


def _module(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


# --- the built-in functions whose results or effects a traced program does not have


class ImpureCall(NamedTuple):
    """The kind of a call, its name, and what to do instead."""

    kind: str
    name: str
    fix: str


_ONCE = "A traced function runs once"
_FIXES = {
    "random numbers": f"{_ONCE}, so the numbers become constants: pass a key, and use xlamini.random.",
    "a clock": f"{_ONCE}, so the time becomes a constant, that of the trace: measure outside of the function.",
    "output": f"{_ONCE}, so this is printed once, when it is traced: use xlamini.debug.print.",
    "input": f"{_ONCE}, so it asks once: ask outside, and pass the answer as an argument.",
    "a file": f"{_ONCE}, so the file is read or written once: do it outside, or by xlamini.io_callback.",
}
NUMPY_RANDOM = ImpureCall("random numbers", "numpy.random", _FIXES["random numbers"])
_CLOCKS = frozenset(name for name in dir(time) if name.endswith(("time", "monotonic", "counter", "_ns")))


def impurity_of(called: Any) -> ImpureCall | None:
    """What is impure about a call of this built-in function; None if nothing is."""
    kind = _kind(called)
    return None if kind is None else ImpureCall(kind, _name(called), _FIXES[kind])


def _kind(called: Any) -> str | None:
    owner, name = getattr(called, "__self__", None), getattr(called, "__name__", "")
    if isinstance(owner, random.Random | np.random.RandomState | np.random.Generator):
        return "random numbers"
    if owner is time and name in _CLOCKS:
        return "a clock"
    if isinstance(owner, type) and issubclass(owner, datetime.date) and name in ("now", "utcnow", "today"):
        return "a clock"
    return _BUILTINS.get(name) if owner is builtins or getattr(owner, "__name__", "") in ("_io", "io") else None


_BUILTINS = {"print": "output", "input": "input", "open": "a file"}


def _name(called: Any) -> str:
    owner = getattr(called, "__self__", None)
    module = getattr(owner, "__name__", None) or type(owner).__name__
    return f"{called.__name__}()" if owner is builtins else f"{module}.{called.__name__}()"
