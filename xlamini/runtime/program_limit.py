"""How many programs a process may hold.

A program compiled for the CPU lies in three memory maps of its own, of which Linux gives a process 65,530; when they
are spent, the compiler kills it. So after every few thousand programs the caches let go of those they made for single
operations, which are quickly made again; the programs of a user's own functions stay.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

ROOM = 2048
"""So many programs may be made before the caches are asked again; they lie in about 6,000 maps and 400 MB."""


class Crowd:
    """The programs that are loaded, and what is done when there are many."""

    def __init__(self, room: int = ROOM):
        self.loaded: weakref.WeakSet[Any] = weakref.WeakSet()
        self.room = self.limit = room
        self.forget: Callable[[], None] = lambda: None

    def add(self, program: Any) -> None:
        """Count a program for as long as it lives; let others go if it is one too many."""
        if len(self.loaded) >= self.limit:
            self.forget()
            self.limit = len(self.loaded) + self.room
        self.loaded.add(program)


crowd = Crowd()
