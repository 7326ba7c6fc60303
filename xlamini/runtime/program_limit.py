"""A limit on the programs that a process holds.

A program compiled for the CPU takes three to ten memory maps, of which Linux allows a process 65,530; when they run
out, the compiler aborts. So after every few thousand programs the caches drop those of single operations, which are
cheap to compile again, and, where one function was called with thousands of shapes, its oldest.
"""
from __future__ import annotations

import weakref
from typing import Any

from xlamini.core import hooks

ROOM = 2048
"""The number of new programs between two evictions; they take about 6,000 memory maps and 400 MB."""
MOST_OF_USER = 2048
"""The number of programs of the user's functions that an eviction leaves."""


class Crowd:
    """The loaded programs of the process, and the eviction hook `forget` for when there are too many."""

    def __init__(self, room: int = ROOM):
        self.loaded: weakref.WeakSet[Any] = weakref.WeakSet()
        self.room = self.limit = room

    def add(self, program: Any) -> None:
        """Register a program, weakly; call the eviction hook first if the limit is reached."""
        if len(self.loaded) >= self.limit:
            hooks.evict_programs()
            self.limit = len(self.loaded) + self.room
        self.loaded.add(program)


crowd = Crowd()
