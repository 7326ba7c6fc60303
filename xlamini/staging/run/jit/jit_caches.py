"""The caches of jitted functions: traces and programs, shared by every `jit` of one function under equal options."""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import OwnedMemo
from xlamini.core.caching.memo import made_once

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
    """What a program depends on, be it of a jitted function or an eager transformation.

    `structure` is a `Structure`, or the `executable_key` itself, which keeps no jaxpr alive. `device` is one or a mesh
    with shardings. Where nothing is donated, `donated` is empty.
    """

    structure: Hashable
    device: Any
    compile_flags: tuple
    donated: tuple[bool, ...] = ()
    trace_context: tuple = ()
    orders: Any = None


def program_once(caches: SharedCaches, key: ProgramKey, name: str, make: Callable[[], Program]) -> Program:
    """The program of a key; `make()` compiles it, in one thread, if there is none."""

    def find() -> Program | None:
        return programs.newest(caches, key)  # the oldest are the first to be evicted

    return made_once((caches, key), f"the compilation of {name}", find, lambda: programs.keep(caches, key, make()))


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
