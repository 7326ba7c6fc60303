"""The report of a script as text."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core.console import printable
from xlamini.inspection.layout import columns, ending, table
from xlamini.inspection.timing.causes.findings import TimeFindings
from xlamini.inspection.timing.script.record import ScriptRecord, known_as
from xlamini.inspection.timing.script.samples import by_line
from xlamini.inspection.units import shown
from xlamini.staging.compile.ledger import Compilations, Function

_ROWS = 10
_WIDTH = 84
"""Of the name of a line; the numbers before it take the rest of a terminal."""
_LEAST = 0.01
"""The share of the time from which on a line's own Python and transfers are listed."""
_BYTES = 2**20


def script_text(found: ScriptRecord, findings: TimeFindings, notes: Sequence[str] = ()) -> str:
    """The shares of the time, the findings, and the tables; `notes` say what is missing."""
    said = "\n".join(["Findings", *map(str, findings)]) if findings else "Nothing stands out."
    host = _compilations(found), _waits(found), _transfers(found), _python(found)
    parts = [_shares(found), said, *host, str(found.lines), found.report.devices(), *notes]
    return printable("\n\n".join(filter(None, parts)))


def _shares(found: ScriptRecord) -> str:
    """The wall time by what the host did, then by what the device did meanwhile."""
    known = {**found.host, **found.on_device}
    rows = [[shown(s, "seconds"), f"{s / found.wall:.0%}", name] for name, s in known.items()]
    head = f"{shown(found.wall, 'seconds')} of wall time"
    beside = ["Threads did this beside each other, so that it adds up to more."] * found.is_beside
    return "\n".join([head, *columns(["time", "share", "what went on"], rows, (0, 1)), *beside])


def _table(title: str, head: Sequence[str], rows: list[list[str]], right: Sequence[int] = (0, 1)) -> str:
    """A table with the first rows, whose last cells are lines; "" without any."""
    cut = [[*row[:-1], ending(row[-1], _WIDTH)] for row in rows]
    return "\n".join([title, *table(head, cut, _ROWS, right)]) if rows else ""


def _compilations(found: ScriptRecord) -> str:
    functions = sorted(found.compiled.by_function().items(), key=lambda f: -sum(e.total for e in f[1]))
    return _table("Compiled", ["time", "count", "function"], [_compiled(*each) for each in functions])


def _compiled(function: Function, entries: Compilations) -> list[str]:
    count, longest = sum(entry.compiled for entry in entries), max(entries, key=lambda e: e.total)
    where = f"{known_as(function, longest)[1]} ({function.name})"  # of which a long path is cut
    return [shown(sum(e.total for e in entries), "seconds"), str(count), where]


def _waits(found: ScriptRecord) -> str:
    rows = [[shown(wait.seconds, "seconds"), str(wait.count), wait.line] for wait in found.waits.lines()]
    return _table("Waited for the device", ["time", "count", "line"], rows)


def _transfers(found: ScriptRecord) -> str:
    rows = [
        [shown(e.seconds, "seconds"), str(e.count), shown(e.bytes, "bytes"), e.given, e.made, e.line]
        for e in found.transfers.lines()
        if e.bytes >= _BYTES or e.seconds >= _LEAST * found.wall
    ]
    return _table("Moved to the device", ["time", "count", "bytes", "from", "to", "line"], rows, (0, 1, 2))


def _python(found: ScriptRecord) -> str:
    lines = [each for each in by_line(found.python) if each.seconds >= _LEAST * found.wall]
    rows = [[shown(each.seconds, "seconds"), f"{each.seconds / found.wall:.0%}", each.line] for each in lines]
    return _table("Python by line", ["time", "share", "line"], rows)
