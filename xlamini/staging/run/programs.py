"""The table of programs: every way to run looks one up here, by its structure, place, flags and donation.

A program dies with its owner. That of a jitted function belongs to the function's caches; those of eager
transformations, and of functions that are made in each call, have one owner together.
"""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from xlamini.core import OwnedMemo
from xlamini.core.caching.memo import made_once

if TYPE_CHECKING:
    from xlamini.staging.compile.program import Program
    from xlamini.staging.trace.tracing import Trace


class ProgramKey(NamedTuple):
    """What a program depends on.

    `structure` is a `Structure`, or an `executable_key` where the key must keep no jaxpr alive. `device` is one or a
    mesh with shardings. Where nothing is donated, `donated` is empty.
    """

    structure: Hashable
    device: Any
    compile_flags: tuple[Any, ...]
    donated: tuple[bool, ...] = ()
    trace_context: tuple[Any, ...] = ()
    orders: Any = None


class Seen(NamedTuple):
    """What is remembered of a trace, though it may be gone: its thread, whether it captured tracers, and its cause."""

    thread: int
    captures_tracers: bool
    cause: Any


MOST = 4096
"""How many traces are kept, and how many are remembered."""


class SharedCaches:
    """The traces and programs of one function under equal options; of programs the least recently used goes first.

    The traces hold no reference to the function, which would keep it alive. This object is also the key of the
    function's signatures in C++ dispatch.
    """

    def __init__(self, most: int = MOST) -> None:
        self.programs: OrderedDict[ProgramKey, Program] = OrderedDict()
        self.most = most
        self.traces: dict[Any, Trace] = {}
        self.said_many = False
        self.seen: dict[int, Seen] = {}
        """By the hash of a trace's key; not emptied with the caches."""
        self.compiled = 0
        """How often it was compiled."""


traces: Final = OwnedMemo("program: traces of jitted functions", MOST, "traces")
with_refs: Final = OwnedMemo("program: jitted functions with refs", 16, "of_cells")
"""Of the calls of a jitted function with refs: by the cells of those that it closes over, the function of their values.
"""
table: Final = OwnedMemo("program: by structure", MOST, "programs", counted=True)
shared: Final = SharedCaches(1024)
"""The owner of what outlives a call, and belongs to no function."""

find: Callable[[SharedCaches, ProgramKey], Program | None] = table.newest
"""The program of a key; None if there is none."""


def find_or_make(owner: SharedCaches, key: ProgramKey, name: str, make: Callable[[], Program]) -> Program:
    """The program of a key; `make()` compiles it, in one thread, if there is none."""

    def kept() -> Program:
        return table.keep(owner, key, make(), owner.most)

    return made_once((owner, key), f"the compilation of {name}", lambda: find(owner, key), kept)


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
