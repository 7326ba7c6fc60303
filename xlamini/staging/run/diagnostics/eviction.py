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
from xlamini.staging.run.eager.program_cache import programs
from xlamini.staging.run.jit.jit_caches import SharedCaches
from xlamini.staging.run.jit.jitted_function import Jitted, jitted_functions


def evict_programs(most: int) -> None:
    """Drop the library's own programs, and so many of the user's that `most` are left."""
    functions = alive(jitted_functions)
    for jitted in functions:
        if is_own(jitted.fun):
            jitted.forget()
    by_caches: dict[SharedCaches, list[Jitted]] = {}
    for jitted in functions:
        by_caches.setdefault(jitted.caches, []).append(jitted)
    surplus = sum(len(caches.programs) for caches in by_caches) + len(programs) - most
    if len(programs) >= max((len(caches.programs) for caches in by_caches), default=0):
        surplus -= _drop_oldest_eager(min(len(programs) - len(programs) // 2, surplus))
    for caches in sorted(by_caches, key=lambda caches: -len(caches.programs)):
        if surplus <= 0:
            return
        emit(EVICTED, by_caches[caches][0].name, caches)
        count = len(caches.programs)
        surplus -= _drop_oldest(caches, min(count - count // 2, surplus))
        for jitted in by_caches[caches]:
            jitted.in_python.calls.clear()
            jitted.clear_dispatch()


def _drop_oldest(caches: SharedCaches, count: int) -> int:
    """Drop the `count` oldest programs with their traces; returns how many they were."""
    oldest = alive(caches.programs)[:count]
    dropped = {key.structure for key in oldest}
    for key in oldest:
        caches.programs.pop(key, None)
    for key, traced in list(caches.traces.items()):
        if Structure(traced.jaxpr) in dropped:
            caches.traces.pop(key, None)
    return len(oldest)


def _drop_oldest_eager(count: int) -> int:
    """Drop the `count` oldest programs of eager transformations; returns how many they were."""
    oldest = list(programs.table)[: max(count, 0)]
    for key in oldest:
        programs.table.pop(key, None)
    return len(oldest)
