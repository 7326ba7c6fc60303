"""Eviction: which programs go when the process holds too many (runtime/execution/program_limit.py).

Those of single operations and composites go first. Of the user's functions, those with the most programs lose their
oldest: such a function is called with ever new shapes, while one that is compiled once stays. Eager transformations
count as one function. C++ holds programs too, so the signatures of such a function are cleared; its next call finds
what was left.
"""

from __future__ import annotations

from xlamini.core.caching.memo import alive
from xlamini.core.caching.structure import Structure
from xlamini.core.errors.frames import is_own
from xlamini.core.events import EVICTED, emit
from xlamini.staging.run.jit.cpp_function import jitted_functions
from xlamini.staging.run.jit.jitted_function import Jitted
from xlamini.staging.run.programs import SharedCaches, shared


def evict_programs(most: int) -> None:
    """Drop the library's own programs, and so many of the user's that `most` are left."""
    functions = alive(jitted_functions)
    for jitted in functions:
        if is_own(jitted.fun):
            jitted.forget()
    by_owner: dict[SharedCaches, list[Jitted]] = {shared: []}
    for jitted in functions:
        by_owner.setdefault(jitted.owner, []).append(jitted)
    surplus = sum(len(owner.programs) for owner in by_owner) - most
    for owner in sorted(by_owner, key=lambda owner: -len(owner.programs)):
        if surplus <= 0:
            return
        if owner is not shared:
            emit(EVICTED, by_owner[owner][0].name, owner)
        count = len(owner.programs)
        surplus -= _drop_oldest(owner, min(count - count // 2, surplus))
        for jitted in by_owner[owner]:
            jitted.in_python.calls.clear()
            jitted.clear_dispatch()


def _drop_oldest(owner: SharedCaches, count: int) -> int:
    """Drop the `count` oldest programs, of a function with their traces; returns how many they were."""
    oldest = alive(owner.programs)[:count]
    dropped = {key.structure for key in oldest}
    for key in oldest:
        owner.programs.pop(key, None)
    for key, traced in list(owner.traces.items()):
        if Structure(traced.jaxpr) in dropped:
            owner.traces.pop(key, None)
    return len(oldest)
