"""The ledger of compilations as text, and the report of it when a process ends, under flag `report`."""
from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator

from xlamini.staging.compile.ledger import Compilation, Compilations, Function, compilations

_FUNCTIONS, _ENTRIES = 20, 12
"""How many functions are listed, those that took longest, and how many entries of each, the newest."""


def listed(entries: Compilations) -> str:
    """The entries by function, those that took longest first; the library's own operations on one line."""
    users = Compilations([e for e in entries if not e.is_own])
    own = Compilations([e for e in entries if e.is_own])
    lines = [_sum("compilations", entries)]
    groups = sorted(users.by_function().items(), key=lambda item: -_total(item[1]))
    for function, group in groups[:_FUNCTIONS]:
        lines += _group(function, group)
    if len(groups) > _FUNCTIONS:
        lines.append(f"{len(groups) - _FUNCTIONS} more functions")
    if own:
        lines.append(_sum("operations outside of jit", own))
    return "\n".join(lines)


def _group(function: Function, group: Compilations) -> Iterator[str]:
    yield _sum(str(function), group)
    if len(group) > _ENTRIES:
        yield f"  {len(group) - _ENTRIES} earlier ones"
    for entry in group[-_ENTRIES:]:
        yield from _entry(entry)


def _entry(entry: Compilation) -> Iterator[str]:
    note = "" if entry.compiled else ", traced only"
    yield f"  {entry.total:8.3f} s  {entry.where}{note}"
    yield f"              {entry.cause.kind}: {entry.cause.text}"
    if entry.cause.edit:
        yield f"              to avoid it, {entry.cause.edit}"


def _sum(what: str, entries: Compilations) -> str:
    phases = ", ".join(f"{phase} {seconds:.3f}" for phase, seconds in entries.seconds.items())
    compiled = sum(entry.compiled for entry in entries)
    return f"{what}: {compiled} compiled, {len(entries) - compiled} traced only, {_total(entries):.3f} s ({phases})"


def _total(entries: Compilations) -> float:
    return sum(entry.total for entry in entries)


def report_at_exit() -> None:
    """Print the ledger to stderr when the process ends."""
    atexit.register(lambda: sys.stderr.write(f"{compilations()}\n"))
