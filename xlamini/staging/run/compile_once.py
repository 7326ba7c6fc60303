"""One compilation for all threads that need a program at the same time: one compiles it, the others wait for it.

C++ dispatch makes the calls of one signature of one jitted function wait. Signatures that share a program come here,
and the programs of eager transformations, which are looked up by structure.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

V = TypeVar("V")

_compiling: dict[Hashable, threading.Event] = {}


class _Thread(threading.local):
    compiles = False


_thread = _Thread()


def compiled_once(key: Hashable, find: Callable[[], V | None], make: Callable[[], V]) -> V:
    """`find()`, or where that is None `make()`, which adds what `find` then finds; one thread at a time makes a key.

    If `make` raises, one of those who wait tries next. A thread that compiles waits for no other, as a lowering may
    run programs itself: so no two threads wait for each other. Tracing is not part of it, because the user's code may
    wait for threads.
    """
    while (found := find()) is None:
        if _thread.compiles:
            return make()
        done = threading.Event()
        others = _compiling.setdefault(key, done)
        if others is done:
            return _made(key, find, make, done)
        others.wait()
    return found


def _made(key: Hashable, find: Callable[[], V | None], make: Callable[[], V], done: threading.Event) -> V:
    _thread.compiles = True
    try:
        found = find()  # by a thread that was done between our look and our turn
        return make() if found is None else found
    finally:
        _thread.compiles = False
        del _compiling[key]
        done.set()
