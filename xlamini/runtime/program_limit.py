"""A limit on the programs that a process holds.

A program compiled for the CPU takes three memory maps, of which Linux allows a process 65,530; when they run out, the
compiler aborts. So after every few thousand programs the caches drop the programs of single operations, which are cheap
to compile again; the programs of the user's functions stay.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

ROOM = 2048
"""The number of new programs between two evictions; they take about 6,000 memory maps and 400 MB."""


class Crowd:
    """The loaded programs of the process, and the eviction hook `forget` for when there are too many."""

    def __init__(self, room: int = ROOM):
        self.loaded: weakref.WeakSet[Any] = weakref.WeakSet()
        self.room = self.limit = room
        self.forget: Callable[[], None] = lambda: None

    def add(self, program: Any) -> None:
        """Register a program, weakly; call the eviction hook first if the limit is reached."""
        if len(self.loaded) >= self.limit:
            self.forget()
            self.limit = len(self.loaded) + self.room
        self.loaded.add(program)


crowd = Crowd()
