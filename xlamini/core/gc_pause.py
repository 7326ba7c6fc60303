"""No garbage collection while programs are built.

Tracing, rewriting and lowering make many objects that all stay alive. Python's collector goes through them again and
again and finds nothing; for a large program that takes as long as the work itself.
"""
from __future__ import annotations

import gc


class paused_gc:
    """`with paused_gc():` keeps the cyclic collector from running inside; it may be off already, as in nested uses.

    A class, as are all contexts that every trace enters: it takes a third of a generator's time.
    """

    __slots__ = ("_was_on",)

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._was_on:
            gc.enable()
