"""Memos: named caches with a limit, which `xlamini.debug.memos()` lists and `xlamini.clear_caches()` empties.

A memo is one table (`Memo`), a table on each of many objects that dies with its object (`OwnedMemo`), or the results of
a function (`memoised`). At the limit a table drops its oldest entry; a memoised function its least recently used one.
`made_once` makes an entry that several threads need at the same time, and that is dear, in one of them.

`paused_gc` keeps the garbage collector from running while programs are built.
"""
from __future__ import annotations

import functools
import gc
import threading
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from xlamini.core.waits import wait_for_thread

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")


class _Registered(NamedTuple):
    """How the registry asks a memo for its state, and empties it."""

    limit: int | None
    entries: Callable[[], int]
    hits: Callable[[], int | None]
    clear: Callable[[], None]


_registry: dict[str, _Registered] = {}
_FEW = 1024
"""How many owners of tables are looked through at least, to find those that have died."""


def register(
    name: str,
    limit: int | None,
    entries: Callable[[], int],
    clear: Callable[[], None],
    hits: Callable[[], int | None] = lambda: None,
) -> None:
    """List a cache among the memos; `hits` gives None where counting would slow down a hot path."""
    assert name not in _registry, f"two memos are called {name!r}"
    _registry[name] = _Registered(limit, entries, hits, clear)


class Memo:
    """One table. `table` is open to hot paths, which look up there without counting a hit.

    `weight` gives what a value counts toward the limit, where that is not 1.
    """

    __slots__ = ("hits", "limit", "table", "weight")
    hits: int
    limit: int
    weight: Callable[[Any], int] | None

    def __init__(
        self, name: str, limit: int, counted: bool = True, weight: Callable[[Any], int] | None = None
    ) -> None:
        self.limit, self.weight, self.hits = limit, weight, 0
        self.table: dict[Any, Any] = {}
        register(name, limit, self.__len__, self.clear, lambda: self.hits if counted else None)

    def get(self, key: Any, default: Any = None) -> Any:
        """The entry, or the default; counts a hit."""
        value = self.table.get(key, default)
        if value is not default:
            self.hits += 1
        return value

    def keep(self, key: Any, value: V) -> V:
        """Add an entry and return it; the oldest ones go while the limit is exceeded."""
        self.table[key] = value
        while (len(self.table) if self.weight is None else self._weight()) > self.limit:
            drop_oldest(self.table)
        return value

    def get_or_make(self, key: Any, make: Callable[[], V]) -> V:
        """The entry, or a new one that `make()` returns."""
        value = self.get(key)
        return self.keep(key, make()) if value is None else value

    def clear(self) -> None:
        """Drop all entries."""
        self.table.clear()
        self.hits = 0

    def _weight(self) -> int:
        assert self.weight is not None
        return sum(map(self.weight, list(self.table.values())))

    def __len__(self) -> int:
        return len(self.table)


class OwnedMemo:
    """A table on each of many objects, in the attribute named; no entry outlives its object.

    The limit is that of one table. Hits are counted if whoever looks up adds them to `hits`.
    """

    __slots__ = ("attribute", "hits", "limit", "most", "owners")
    attribute: str
    hits: int
    limit: int | None

    def __init__(self, name: str, limit: int | None, attribute: str, counted: bool = False) -> None:
        self.limit, self.attribute, self.hits = limit, attribute, 0
        self.owners: dict[int, weakref.ref[Any]] = {}
        """By identity, those whose tables have had an entry. The dead go when there are more than `most`."""
        self.most: int = _FEW
        register(name, limit, self.__len__, self.clear, lambda: self.hits if counted else None)

    def keep(self, owner: Any, key: Any, value: V, limit: int | None = None) -> V:
        """Add an entry to the owner's table and return it; at the limit, its own or the memo's, the oldest one goes.

        Of two that threads made at once the first stays, and is returned to both.
        """
        limit = limit or self.limit
        table = getattr(owner, self.attribute)
        if not table:
            self._register(owner)
        value = table.setdefault(key, value)
        if limit is not None and len(table) > limit:
            drop_oldest(table)
        return value

    def newest(self, owner: Any, key: Any) -> Any:
        """The entry of the owner's table, an OrderedDict, which becomes the newest; None if there is none."""
        table = getattr(owner, self.attribute)
        try:
            table.move_to_end(key)
        except KeyError:  # no entry, or one that another thread drops now
            return None
        self.hits += 1
        return table.get(key)

    def _register(self, owner: Any) -> None:
        if len(self.owners) > self.most:
            self.most = max(_FEW, 2 * len(self._alive()))
        self.owners[id(owner)] = weakref.ref(owner)

    def _alive(self) -> list[Any]:
        """The owners that are alive; the others are forgotten."""
        known = [(key, reference, reference()) for key, reference in list(self.owners.items())]
        for key, reference, owner in known:
            if owner is None and (now := self.owners.pop(key, None)) is not reference and now is not None:
                self.owners[key] = now  # of another thread, whose owner lies where the dead one lay
        return [owner for _, _, owner in known if owner is not None]

    def tables(self) -> list[dict[Any, Any]]:
        """The tables of all owners that are alive."""
        return [table for owner in self._alive() if (table := getattr(owner, self.attribute, None))]

    def clear(self) -> None:
        """Drop all entries of all owners."""
        for table in self.tables():
            table.clear()
        self.hits = 0

    def __len__(self) -> int:
        return sum(map(len, self.tables()))


class _Making:
    """What a thread makes, and others wait for."""

    def __init__(self) -> None:
        self.thread, self.done = threading.current_thread().name, threading.Event()


_in_progress: dict[Hashable, _Making] = {}


class _MemoThread(threading.local):
    makes = False


_thread = _MemoThread()


def made_once(key: Hashable, what: str, find: Callable[[], V | None], make: Callable[[], V]) -> V:
    """`find()`, or where that is None `make()`, which adds what `find` then finds; one thread at a time makes a key.

    `what` says it in words, to those who wait for long.

    If `make` raises, one of those who wait tries next. A thread that makes something waits for no other, as compiling
    a program may run another: so no two threads wait for each other. `make` must not call the user's code, which may
    wait for threads; so functions are traced by each thread.
    """
    while (found := find()) is None:
        if _thread.makes:
            return make()
        mine = _Making()
        others = _in_progress.setdefault(key, mine)
        if others is mine:
            return _made(key, find, make, mine.done)
        wait_for_thread(others.done, f"thread {mine.thread} has waited for {what}, by thread {others.thread},")
    return found


def _made(key: Hashable, find: Callable[[], V | None], make: Callable[[], V], done: threading.Event) -> V:
    _thread.makes = True
    try:
        found = find()  # by a thread that was done between our look and our turn
        return make() if found is None else found
    finally:
        _thread.makes = False
        del _in_progress[key]
        done.set()


def alive(objects: weakref.WeakSet[V] | dict[V, Any]) -> list[V]:
    """The members of a weak set, or the keys of a table, which another thread may be changing."""
    while True:
        with suppress(RuntimeError):
            return list(objects)


def drop_oldest(table: dict[Any, Any]) -> None:
    """Drop the first entry of a table, if there is one."""
    with suppress(KeyError, RuntimeError, StopIteration):  # another thread has changed the table
        del table[next(iter(table))]


def memoised(name: str, limit: int | None, typed: bool = False) -> Callable[[F], F]:
    """Decorator that memoises a function of hashable arguments, by C: an `lru_cache` that the registry knows."""

    def decorate(fun: F) -> F:
        cached: Any = functools.lru_cache(limit, typed)(fun)
        register(
            name,
            limit,
            lambda: cached.cache_info().currsize,
            cached.cache_clear,
            lambda: cached.cache_info().hits,
        )
        return cached

    return decorate


class MemoRow(NamedTuple):
    """The state of one memo. `hits` is None where hits are not counted, `limit` None where there is none."""

    name: str
    entries: int
    hits: int | None
    limit: int | None


class MemoTable:
    """The state of all memos when the table was made; prints as a table."""

    def __init__(self, rows: list[MemoRow]):
        self.rows = rows

    def as_dict(self) -> dict[str, dict[str, int | None]]:
        """Entries, hits and limit by the memo's name."""
        return {row.name: {"entries": row.entries, "hits": row.hits, "limit": row.limit} for row in self.rows}

    def __repr__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [f"{'memo':{width}}  {'entries':>7}  {'hits':>11}  {'limit':>7}"]
        for name, entries, hits, limit in self.rows:
            counted, most = "not counted" if hits is None else hits, "none" if limit is None else limit
            lines.append(f"{name:{width}}  {entries:>7}  {counted:>11}  {most:>7}")
        return "\n".join(lines)


def memos() -> MemoTable:
    """The library's caches: name, entries, hits and limit of each; see docs/cache.md.

    A cache is listed once the module that has it is imported. `xlamini.clear_caches()` empties all of them.

    >>> xlamini.debug.memos().as_dict()["call: library functions"]["limit"]
    4096
    """
    return MemoTable([MemoRow(name, m.entries(), m.hits(), m.limit) for name, m in sorted(_registry.items())])


def clear_caches() -> None:
    """Empty all caches in memory: traces, rewrites, compiled programs. The next call traces and compiles again.

    Programs on disk stay; see `xlamini.cache.clear`.

    >>> def double(x):
    ...     print("traced")
    ...     return 2 * x
    >>> program = xlamini.jit(double)
    >>> _ = program(1.0), program(2.0)
    traced
    >>> xlamini.clear_caches()
    >>> _ = program(3.0)
    traced
    """
    for memo in list(_registry.values()):
        memo.clear()


class paused_gc:
    """`with paused_gc():` keeps the cyclic collector from running inside; it may be off already, as in nested uses.

    Tracing, rewriting and lowering make many objects that all stay alive. The collector would go through them
    again and again and find nothing; for a large program that takes as long as the work itself.

    A class, as are all contexts that every trace enters: it takes a third of a generator's time.
    """

    __slots__ = ("_was_on",)

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._was_on:
            gc.enable()
