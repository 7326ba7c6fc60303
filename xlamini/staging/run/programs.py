"""The table of programs: every way to run looks one up here, by its structure, place, flags and donation.

A program dies with its owner. That of a jitted function belongs to the function's caches; those of eager
transformations, and of functions that are made in each call, have one owner together.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import OwnedMemo
from xlamini.core.caching.memo import made_once

if TYPE_CHECKING:
    from xlamini.staging.compile.program import Program


class ProgramKey(NamedTuple):
    """What a program depends on.

    `structure` is a `Structure`, or an `executable_key` where the key must keep no jaxpr alive. `device` is one or a
    mesh with shardings. Where nothing is donated, `donated` is empty.
    """

    structure: Hashable
    device: Any
    compile_flags: tuple
    donated: tuple[bool, ...] = ()
    trace_context: tuple = ()
    orders: Any = None


class ProgramOwner:
    """Who keeps programs, at most so many: the least recently used is the first to go."""

    def __init__(self, most: int) -> None:
        self.programs: OrderedDict[ProgramKey, Program] = OrderedDict()
        self.most = most


table = OwnedMemo("program: by structure", 4096, "programs", counted=True)
shared = ProgramOwner(1024)
"""The owner of what outlives a call, and belongs to no function."""

find: Callable[[ProgramOwner, ProgramKey], Program | None] = table.newest
"""The program of a key; None if there is none."""


def find_or_make(owner: ProgramOwner, key: ProgramKey, name: str, make: Callable[[], Program]) -> Program:
    """The program of a key; `make()` compiles it, in one thread, if there is none."""

    def kept() -> Program:
        return table.keep(owner, key, make(), owner.most)

    return made_once((owner, key), f"the compilation of {name}", lambda: find(owner, key), kept)
