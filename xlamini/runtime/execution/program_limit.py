"""A limit on the programs that a process holds.

A program compiled for the CPU takes three memory maps, or a hundred if it has many kernels, and Linux allows a process
65,530; when they run out, the compiler aborts. So after every few thousand programs, or when half of the maps are in
use, the caches drop programs of single operations, which are cheap to compile again, and, where one function was called
with many shapes, its oldest.
"""
from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any, Final

from xlamini.core import hooks

ROOM = 2048
"""The number of new programs between two evictions; they take about 6,000 memory maps and 400 MB."""
MOST_OF_USER = 2048
"""The number of programs of the user's functions that an eviction leaves."""


MOST_MAPS = 32_768
"""The number of memory maps at which programs are evicted."""
STRIDE = 64
"""The maps are counted after so many new programs, since counting them takes milliseconds."""
_MAPS = Path("/proc/self/maps")


def count_maps() -> int:
    """The number of memory maps of the process; 0 where the system does not tell, which then has no such limit."""
    return _MAPS.read_bytes().count(b"\n") if _MAPS.exists() else 0


class Crowd:
    """The loaded programs of the process; for when there are too many, the hook that evicts some."""

    limit: int

    def __init__(self, room: int = ROOM):
        self.loaded: weakref.WeakSet[Any] = weakref.WeakSet()
        self.room = self.limit = room
        self.most_maps: int = MOST_MAPS
        self.added: int = 0
        self.kept: list[Any] | None = None
        """The programs of a time in which none may go, as a trace is recorded; None at other times."""

    def add(self, program: Any) -> None:
        """Register a program, weakly; evict others first if the limit is reached."""
        self.added += 1
        if len(self.loaded) >= self.limit:
            hooks.evict_programs(MOST_OF_USER)
            self.limit = len(self.loaded) + self.room
        elif self.added % STRIDE == 0 and count_maps() > self.most_maps:
            hooks.evict_programs(len(self.loaded) // 2)
            self.most_maps = max(MOST_MAPS, count_maps() + MOST_MAPS // 4)  # what the user holds cannot be evicted
        self.loaded.add(program)
        if self.kept is not None:
            self.kept.append(program)


crowd: Final = Crowd()
