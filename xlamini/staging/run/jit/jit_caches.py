"""The caches of jitted functions: traces and programs, shared by every `jit` of one function under equal options."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import OwnedMemo
from xlamini.staging.run.programs import ProgramOwner

if TYPE_CHECKING:
    from xlamini.staging.trace.tracing import Trace


class Seen(NamedTuple):
    """What is remembered of a trace, though it may be gone: its thread, whether it captured tracers, and its cause."""

    thread: int
    captures_tracers: bool
    cause: Any


MOST = 4096
"""How many traces are kept, and how many are remembered."""


class SharedCaches(ProgramOwner):
    """The traces and programs of one function under equal options.

    The traces hold no reference to the function, which would keep it alive. This object is also the key of the
    function's signatures in C++ dispatch.
    """

    def __init__(self) -> None:
        super().__init__(MOST)
        self.traces: dict[Any, Trace] = {}
        self.said_many = False
        self.seen: dict[int, Seen] = {}
        """By the hash of a trace's key; not emptied with the caches."""
        self.compiled = 0
        """How often it was compiled."""


traces = OwnedMemo("program: traces of jitted functions", MOST, "traces")
with_refs = OwnedMemo("program: jitted functions with refs", None, "memo")
"""On the first ref cell that a function touches: the function with its refs as arguments and results."""


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
