"""The caches of jitted functions: traces and programs, shared by every `jit` of one function under equal options."""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import Jaxpr, OwnedMemo
from xlamini.core.memo import alive, made_once
from xlamini.core.structure import executable_key

if TYPE_CHECKING:
    from xlamini.staging.compile.program import Program
    from xlamini.staging.trace.tracing import Trace


class Seen(NamedTuple):
    """What is remembered of a trace, though it may be gone: its thread, whether it captured tracers, and its cause."""

    thread: int
    captures_tracers: bool
    cause: Any


_MOST = 4096
"""How many traces are kept, and how many are remembered."""


class SharedCaches:
    """The traces and programs of one function under equal options.

    The traces hold no reference to the function, which would keep it alive. This object is also the key of the
    function's signatures in C++ dispatch.
    """

    def __init__(self) -> None:
        self.traces: dict[Any, Trace] = {}
        self.programs: OrderedDict[ProgramKey, Program] = OrderedDict()
        self.said_many = False
        self.seen: dict[int, Seen] = {}
        """By the hash of a trace's key; not emptied with the caches."""
        self.compiled = 0
        """How often it was compiled."""

    def remember(self, key: int, seen: Seen) -> None:
        """Remember a trace; the oldest is forgotten at the limit."""
        self.seen[key] = seen
        if len(self.seen) > _MOST:
            del self.seen[next(iter(self.seen))]


traces = OwnedMemo("program: traces of jitted functions", _MOST, "traces")
programs = OwnedMemo("program: jitted functions", _MOST, "programs")
with_refs = OwnedMemo("program: jitted functions with refs", None, "memo")
"""On the first ref cell that a function touches: the function with its refs as arguments and results."""


class ProgramKey(NamedTuple):
    """What a program depends on."""

    jaxpr: Jaxpr
    device: Any
    tree: Any
    compile_flags: tuple
    trace_context: tuple
    keeps_donated: bool
    orders: Any


def program_once(caches: SharedCaches, key: ProgramKey, make: Callable[[], Program]) -> Program:
    """The program of a key; `make()` compiles it, in one thread, if there is none."""
    what = f"the compilation of {key.jaxpr.name}"
    return made_once((caches, key), what, lambda: _program_of(caches, key), lambda: programs.keep(caches, key, make()))


def _program_of(caches: SharedCaches, key: ProgramKey) -> Program | None:
    """The program of a key, or that of a jaxpr with equal equations.

    Another static argument, such as a function made anew for each call, may give the same equations.
    """
    known = programs.newest(caches, key)  # the oldest are the first to be evicted
    if known is not None:
        return known
    for other in alive(caches.programs):
        equal = other[1:] == key[1:] and _run_alike(other.jaxpr, key.jaxpr)
        if equal and (found := caches.programs.get(other)) is not None:
            return programs.keep(caches, key, found)
    return None


def _run_alike(a: Jaxpr, b: Jaxpr) -> bool:
    alike = len(a.eqns) == len(b.eqns) and a.in_avals == b.in_avals  # keys take time, so most are told apart by these
    return alike and executable_key(a) == executable_key(b)


_shared: weakref.WeakKeyDictionary[Any, dict[Hashable, SharedCaches]] = weakref.WeakKeyDictionary()


def shared_caches(fun: Callable[..., Any], options_key: Callable[[], Hashable]) -> SharedCaches:
    """So that `jit(f)(x)` in a loop compiles once. Callables that are no functions may be equal and yet differ."""
    if type(fun) is not FunctionType:
        return SharedCaches()
    try:
        return _shared.setdefault(fun, {}).setdefault(options_key(), SharedCaches())
    except (TypeError, AttributeError):  # options that are no good, which is said when they are used
        return SharedCaches()


def unshare() -> None:
    """Give every function that is jitted from now on caches of its own."""
    _shared.clear()
