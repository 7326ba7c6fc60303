"""The ledger of compilations: what was traced and compiled in this process, where, in how many seconds, and why.

An entry is made on a cache miss only, where milliseconds are spent anyway. It consists of texts and numbers, so that
it keeps no array and no function alive. The ledger has the newest entries; `xlamini.clear_caches()` leaves them.
"""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

from xlamini.core.errors.frames import user_line
from xlamini.core.events import COMPILED, LOADED, LOWERED, PREPARED, REWRITTEN, TRACED, Phase
from xlamini.core.flags.config import recorder
from xlamini.core.flags.jax_flags import report

Seconds = dict[str, float]
"""Seconds by the name of the phase."""

_PHASES = {
    TRACED: "trace", REWRITTEN: "rewrite", PREPARED: "rewrite", LOWERED: "lower", COMPILED: "compile", LOADED: "load"
}  # fmt: skip

MOST = 4096
"""How many entries the ledger keeps."""


class Cause(NamedTuple):
    """Why a function was compiled: how its call differs from the nearest earlier one.

    `kind` is the class of the cause, such as "shape"; `path` is what differs: a leaf of the arguments, a flag, a
    variable; `text` says how; `edit` says what avoids it, and is empty where nothing is to be avoided; `also` says what
    differs besides.
    """

    kind: str
    path: str
    text: str
    edit: str = ""
    also: tuple[str, ...] = ()


class Function(NamedTuple):
    """What a function is known by: its name, where its code is, and a hash of its code."""

    name: str
    file: str = ""
    line: int = 0
    code: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.file}:{self.line})" if self.file else self.name


@dataclass
class Compilation:
    """One entry of the ledger: a function was traced at a line of the user's program, compiled, or both.

    `seconds` are those of each phase: trace, rewrite, lower, compile, load (from the disk cache).
    """

    function: Function
    cause: Cause
    where: str
    is_own: bool = False
    thread: str = field(default_factory=lambda: threading.current_thread().name)
    traced: bool = False
    compiled: bool = False
    seconds: Seconds = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name

    @property
    def total(self) -> float:
        """The seconds of all phases."""
        return sum(self.seconds.values())

    @property
    def from_disk(self) -> bool:
        """Whether the program was read from the disk cache."""
        return _PHASES[LOADED] in self.seconds

    def add(self, phase: Phase) -> None:
        """Add the seconds of a phase that belongs to this entry."""
        name = _PHASES[phase.kind]
        self.seconds[name] = self.seconds.get(name, 0.0) + phase.own_seconds
        self.compiled |= phase.kind == COMPILED

    def as_dict(self) -> dict[str, Any]:
        """Name, line, cause and seconds, for JSON."""
        return {
            "name": self.name,
            "file": self.function.file,
            "line": self.function.line,
            "where": self.where,
            "thread": self.thread,
            "traced": self.traced,
            "compiled": self.compiled,
            "from_disk": self.from_disk,
            "cause": {**self.cause._asdict(), "also": list(self.cause.also)},
            "seconds": dict(self.seconds),
        }

    def __repr__(self) -> str:
        done = "traced, not compiled" if not self.compiled else "loaded from disk" if self.from_disk else "compiled"
        lines = [f"{self.name} at {self.where}: {done}, {self.total:.3g} s", f"  {self.cause.kind}: {self.cause.text}"]
        lines += [f"  also: {text}" for text in self.cause.also]
        return "\n".join(lines + [f"  to avoid it, {self.cause.edit}"] * bool(self.cause.edit))


class Compilations(Sequence[Compilation]):
    """Entries of the ledger, oldest first; prints as a list of functions, with the seconds and causes of each."""

    def __init__(self, entries: Sequence[Compilation]):
        self._entries = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Compilation: ...
    @overload
    def __getitem__(self, index: slice) -> Compilations: ...
    def __getitem__(self, index: Any) -> Any:
        found = self._entries[index]
        return Compilations(found) if isinstance(index, slice) else found

    @property
    def seconds(self) -> Seconds:
        """The seconds of each phase, over all entries."""
        names = dict.fromkeys(_PHASES.values())
        return {p: sum(e.seconds.get(p, 0.0) for e in self) for p in names if any(p in e.seconds for e in self)}

    def by_function(self) -> dict[Function, Compilations]:
        """The entries of each function."""
        found: dict[Function, list[Compilation]] = {}
        for entry in self:
            found.setdefault(entry.function, []).append(entry)
        return {function: Compilations(entries) for function, entries in found.items()}

    def as_dict(self) -> dict[str, Any]:
        """The number of compilations, the seconds of each phase, and the entries."""
        return {
            "compiled": sum(e.compiled for e in self),
            "traced": sum(e.traced for e in self),
            "seconds": self.seconds,
            "entries": [e.as_dict() for e in self],
        }

    def __repr__(self) -> str:
        from xlamini.staging.compile.ledger_text import listed  # for those who look

        return listed(self)


_entries: deque[Compilation] = deque(maxlen=MOST)


def add(entry: Compilation) -> Compilation:
    """Put an entry into the ledger, unless the program is only inspected."""
    if recorder.value is not None:
        return entry
    if report.value and not _entries:
        from xlamini.staging.compile.ledger_text import report_at_exit  # for those who asked

        report_at_exit()
    _entries.append(entry)
    return entry


def compilations(wanted: Callable[[Compilation], bool] = lambda entry: True) -> Compilations:
    """Every compilation of this process: which function, at which line, how long it took, and what made it necessary.

    `wanted(entry)` chooses among them. There are at most 4,096 of them, the newest.

    >>> f = xlamini.jit(lambda x: x + 1)
    >>> _ = f(1), f(2.0)
    >>> [entry.cause.kind for entry in f.compilations()]
    ['first call', 'dtype']
    """
    return Compilations([entry for entry in list(_entries) if wanted(entry)])


_OUTSIDE = Cause(
    "outside of jit",
    "",
    "an eager transformation or loop is compiled as one program",
    "call it inside of a jitted function: what is eager is traced at every call, and compiled when types change",
)

_AGAIN = Cause(
    "ahead of time", "", "it was compiled by compile() again, with other options", "keep what compile() returns"
)


def compiling(entry: Compilation | None, name: str) -> Compilation:
    """The entry of a program that is compiled now: the one given, or a new one for a program outside of jit."""
    if entry is None:
        return add(Compilation(Function(name), _OUTSIDE, user_line()))
    if entry.compiled:
        return add(Compilation(entry.function, _AGAIN, user_line(), entry.is_own))
    return entry
