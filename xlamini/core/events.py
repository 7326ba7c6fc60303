"""Events: what happens to programs, told to those who listen, with the seconds that it took.

One stream serves the ledger of compilations, monitoring, logs, dumps and inspection (`staging/compile/listeners.py`).
Whoever listens names the kinds of events, and a flag if it listens under that flag alone; nothing is computed for one
who is not there. Listeners are called in the thread in which it happens, in the order in which they subscribed.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

TRACING = "tracing"
"""A signature of a jitted function is traced next; `call` is its entry in the ledger."""
TRACED = "traced"
REWRITTEN = "rewritten"
"""A rewrite is done; `program` is its function, the jaxpr that it took, and its result."""
PREPARED = "prepared"
"""A jaxpr has been brought into the form that is lowered."""
LOWERED = "lowered"
COMPILING, COMPILED = "compiling", "compiled"
"""A program is compiled, or read from the disk cache; before that, `program` is what is compiled."""
XLA_COMPILING, XLA_COMPILED = "XLA compiling", "XLA compiled"
"""The same of XLA's compiler, which is not called for a program from the disk."""
LOADED = "loaded"
"""A program has been read from the disk cache."""
READ, FOUND, MISSING, REFUSED, STORED = "read", "found", "missing", "refused", "stored"
"""What the disk cache did for a program; `program` are the counts that change, as of `xlamini.cache.stats()`."""
EVICTED = "evicted"
"""The oldest programs of a function are dropped next, as the process has too many; `program` are its caches."""
CALLED = "called"
"""A program runs next. While somebody listens, C++ dispatch runs none (`staging/run/jit/call_events.py`)."""

Listener = Callable[[Any], None]

_listeners: dict[str, tuple[tuple[Any, Listener], ...]] = dict.fromkeys(
    (TRACING, TRACED, REWRITTEN, PREPARED, LOWERED, COMPILING, COMPILED, XLA_COMPILING, XLA_COMPILED, LOADED,
     READ, FOUND, MISSING, REFUSED, STORED, EVICTED, CALLED), ()
)  # fmt: skip
"""By kind; each with the flag under which it listens, or None."""


def subscribe(listener: Listener, *kinds: str, under: Any = None) -> None:
    """Call `listener(event)` for events of these kinds, while the flag `under` has a value that counts as true."""
    for kind in kinds:
        _listeners[kind] += ((under, listener),)


def unsubscribe(listener: Listener) -> None:
    """Undo `subscribe`, for all kinds."""
    for kind, found in _listeners.items():
        _listeners[kind] = tuple(entry for entry in found if entry[1] is not listener)


def is_heard(kind: str) -> bool:
    """Whether somebody listens to events of this kind."""
    return bool(_listeners[kind])


class Event:
    """What happened to the program of the function called `name`, in how many seconds.

    `program` is what the kind of event says; `call` is the ledger's entry of the call that it happened for, if there
    is one: it is told of its phases before all others are.
    """

    __slots__ = ("call", "kind", "name", "program", "seconds")
    call: Any
    kind: str
    name: str
    program: Any
    seconds: float

    def __init__(self, kind: str, name: str, program: Any = None, seconds: float = 0.0, call: Any = None):
        self.kind, self.name, self.program, self.seconds, self.call = kind, name, program, seconds, call


def emit(kind: str, name: str, program: Any = None, seconds: float = 0.0, call: Any = None) -> None:
    """Tell those who listen of an event."""
    for flag, listener in _listeners[kind]:
        if flag is None or flag.value:
            listener(Event(kind, name, program, seconds, call))


class _Thread(threading.local):
    phase: Phase | None = None


_thread = _Thread()


def is_phase(kind: str) -> bool:
    """Whether this thread's innermost phase is of this kind."""
    phase = _thread.phase
    return phase is not None and phase.kind == kind


class Phase(Event):
    """A context manager that measures what it contains, and tells of it when it has ended without an error.

    It belongs to the call of the phase around it, unless it is given one. `own_seconds` are those without the phases
    inside, so that nested ones add up to the time that passed.
    """

    __slots__ = ("inner", "outer", "own_seconds", "start")
    call: Any
    inner: float
    outer: Phase | None
    own_seconds: float
    seconds: float
    start: float

    def __enter__(self) -> Phase:
        outer = self.outer = _thread.phase
        if self.call is None and outer is not None:
            self.call = outer.call
        _thread.phase, self.inner = self, 0.0
        self.start = time.perf_counter()
        return self

    def __exit__(self, error: Any, *_: Any) -> None:
        self.seconds = seconds = time.perf_counter() - self.start
        self.own_seconds = seconds - self.inner
        outer = _thread.phase = self.outer
        if outer is not None:
            outer.inner += seconds
        if error is None:
            if self.call is not None:
                self.call.add(self)
            for flag, listener in _listeners[self.kind]:
                if flag is None or flag.value:
                    listener(self)
