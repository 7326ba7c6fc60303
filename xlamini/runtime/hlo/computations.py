"""The computations of an HLO module's text: their lines, the call graph, execution counts, and source locations."""

from __future__ import annotations

import re
from typing import NamedTuple

from xlamini.runtime.hlo.instructions import called_in, unquoted
from xlamini.runtime.hlo.loops import trip_count

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_EITHER = re.compile(r"\b(?:true|false)_computation=%?([\w.\-]+)")
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
_ROW = re.compile(r"^(\d+) (.*)$")
_FIELD = re.compile(r"(\w+)=(\d+)")
ENTRY = "ENTRY"


class Computations(NamedTuple):
    """The lines of each computation by name, its lines that call others, with the names of those, the line that calls
    it, and the source location of each stack frame.

    `starts` has the number of each computation's first line in the text, from 0; that line has its name and types.
    """

    lines: dict[str, list[str]]
    calls: dict[str, list[tuple[str, tuple[str, ...]]]]
    callers: dict[str, str]
    places: dict[int, str]
    starts: dict[str, int]

    def times(self) -> dict[str, int]:
        """The executions of each computation in a call, by the trip counts of `trip_count`; each branch counts once."""
        found = {ENTRY: 1}
        for name in reversed(self.lines):  # a caller is printed after its callees
            for line, every in self.calls[name] if name in found else ():
                for called in every:
                    found[called] = found.get(called, 0) + found[name] * trip_count(self.lines, name, line)
        return {name: times for name, times in found.items() if name in self.lines}

    @staticmethod
    def branches(line: str) -> list[str]:
        """The branch computations of a conditional instruction."""
        if "_computation" not in line:
            return []
        named = [name.strip(" %") for names in _BRANCHES.findall(line) for name in names.split(",")]
        return [*named, *_EITHER.findall(line)]


def computations_of(text: str) -> Computations:
    """The computations of a program's text; the entry computation has the name ENTRY."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    starts: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")):
        head = _HEAD.match(line)
        if head:
            name = ENTRY if head[1] else head[2]
            lines = found[name] = []
            starts[name] = number
        else:
            lines.append(line)
    calls = {name: [(line, every) for line in body if (every := called_in(line))] for name, body in found.items()}
    callers = {name: line for those in calls.values() for line, every in those for name in every}
    return Computations(found, calls, callers, _places(text), starts)


def _places(text: str) -> dict[int, str]:
    """`file:line` of each stack frame, from the tables at the head of the text."""
    tables = {name: _table(text, name) for name in ("FileNames", "FileLocations", "StackFrames")}
    places = {}
    for number, frame in tables["StackFrames"].items():
        location = _fields(tables["FileLocations"].get(_fields(frame)["file_location_id"], ""))
        file = unquoted(tables["FileNames"].get(location.get("file_name_id", 0), '""'))
        if file:
            places[number] = f"{file}:{location['line']}"
    return places


def _fields(row: str) -> dict[str, int]:
    return {name: int(number) for name, number in _FIELD.findall(row)}


def _table(text: str, name: str) -> dict[int, str]:
    """The numbered rows of a table under a heading."""
    _, _, rest = text.partition(f"\n{name}\n")
    rows = (_ROW.match(line) for line in rest.partition("\n\n")[0].splitlines())
    return {int(row[1]): row[2] for row in rows if row}
