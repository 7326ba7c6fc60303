"""What the page of a profile shows, as JSON: the time by line, kernel and program, and a window of the timeline."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from xlamini.inspection.schema import faults, made_with
from xlamini.inspection.timing.page.inspections import LinkedPage
from xlamini.inspection.timing.page.snippets import command, functions_of_programs, snippet, types_of_programs
from xlamini.inspection.timing.page.sources import Sources
from xlamini.inspection.timing.page.window import TimeWindow, window
from xlamini.inspection.timing.table import UNKNOWN_LINE, TimeRow
from xlamini.inspection.timing.trace.events import KernelRun
from xlamini.inspection.timing.trace.host import HostActivity, place
from xlamini.inspection.timing.trace.runs import Transfer
from xlamini.inspection.timing.trace.trace import TimedKernel
from xlamini.staging.compile.ledger import Function

if TYPE_CHECKING:
    from xlamini.inspection.timing.report import TimeReport
    from xlamini.inspection.timing.script.profile import ScriptProfile
    from xlamini.inspection.timing.script.transfers import LineTransfers

_DATA = json.loads(files("xlamini.inspection").joinpath("assets/profile_schema.json").read_text("utf-8"))
VERSION: int = _DATA["version"]
FORM: dict[str, Any] = _DATA["profile"]
_COLUMNS = {"lines": "name", "kernels": "name", "timeline": "kernel", "host": "name"}
"""The parts that are columns, each with the one whose length is that of all."""
_LISTS = ("names", "devices", "focus", "lanes")
"""What of these parts is no column."""
_MOST_LABELS = 12
_MOST_ACTIVITIES = 20_000
_LEAST_PYTHON = 0.01
"""The share of the time from which on a line's own Python makes it a row."""


def time_content(
    report: TimeReport,
    script: ScriptProfile | None = None,
    name: str = "profile",
    inspections: Mapping[str, LinkedPage] = {},
) -> dict[str, Any]:
    """The content of the page: of a recording, and of the script that was recorded, if it is one's.

    `inspections` are the pages beside it, by the names of programs.
    """
    return _Content(report, script, inspections).made(name)


def problems(content: Any) -> list[str]:
    """What is wrong with a dict that should be the content of a page, each with its place."""
    sizes = {
        "row": _count(content, "lines", "name"), "kernel": _count(content, "kernels", "name"),
        "activity": _count(content, "host", "names"), "lane": _count(content, "host", "lanes"),
        "device": _count(content, "timeline", "devices"),
        **{word: len(content[f"{word}s"]) for word in ("file", "program") if isinstance(content.get(f"{word}s"), list)},
    }  # fmt: skip
    return [*faults(content, FORM, sizes)] or [*_uneven(content)]


def _count(content: Mapping[str, Any], part: str, column: str) -> int:
    found = content.get(part)
    return len(found.get(column, ())) if isinstance(found, Mapping) else 0


def _uneven(content: Mapping[str, Any]) -> Iterator[str]:
    for part, first in _COLUMNS.items():
        size = len(content[part][first])
        for column, form in FORM[part].items():
            own = isinstance(form, list) and column not in _LISTS
            if own and len(content[part][column]) != size:
                yield f"{part}.{column} has {len(content[part][column])} rows, {part}.{first} has {size}"


class _Content:
    """The parts of a page. Lines are made first, as all else refers to their rows."""

    def __init__(self, report: TimeReport, script: ScriptProfile | None, inspections: Mapping[str, LinkedPage]):
        self.inspections = inspections
        self.report, self.script, self.trace, self.sources = report, script, report.trace, Sources()
        self.rows: dict[str, int] = {}
        self.found = report.findings() if script is None else script.findings()

    def made(self, name: str) -> dict[str, Any]:
        lines, kernels, script = self._lines(), self.trace.kernels, self.script
        programs = self.report.table("program").rows
        numbers = {_key(k, k.name): i for i, k in enumerate(kernels)}
        drawn = [run for run in self.trace.runs if _key(run, run.kernel) in numbers]  # and no loops around kernels
        shown = window(drawn, self.trace.calls)
        return {
            "schema": VERSION, "kind": "profile", "made_with": made_with(), "name": name, "totals": self._totals(),
            "shares": [*self._shares()], "notes": [] if script is None else script.notes(),
            "findings": self._findings(), "compilations": [] if script is None else _compilations(script),
            "lines": lines, "kernels": self._kernels(kernels, {row.name: i for i, row in enumerate(programs)}),
            "programs": self._programs(programs), "timeline": _timeline(shown, numbers),
            "host": self._host(shown), "files": self.sources.content(),
        }  # fmt: skip

    def _totals(self) -> dict[str, Any]:
        seconds = sum(kernel.seconds for kernel in self.trace.kernels)
        wall = None if self.script is None else self.script.wall
        return {"wall": wall, "kernels": seconds, "covered": self.trace.covered, "span": self.trace.span}

    def _shares(self) -> Iterator[dict[str, Any]]:
        """The wall time by what the host did, and by whether the device computed."""
        if self.script is None:
            span, covered = self.trace.span, self.trace.covered
            of_host, of_device = {}, {"a kernel ran": covered, "no kernel ran": max(span - covered, 0.0)}
        else:
            of_host, of_device = self.script.recorded.host, self.script.recorded.on_device
        for of, shares in (("host", of_host), ("device", of_device)):
            yield from (_share(of, name, seconds) for name, seconds in shares.items())

    def _lines(self) -> dict[str, list[Any]]:
        timed = {row.name: row for row in self.report.table("line").rows}
        waits = {} if self.script is None else {place(w.line): w for w in self.script.waits.lines()}
        compiled = {} if self.script is None else _compiled_at(self.script)
        python, moved = ({}, {}) if self.script is None else (_python(self.script), _moved(self.script))
        said = [it.line for it in self.found if it.line]
        names = [*dict.fromkeys([*timed, *waits, *compiled, *python, *moved, *said])]
        self.rows = {name: i for i, name in enumerate(names)}
        places = [self.sources.add(name) for name in names]
        return {
            "name": names, "file": [file for file, _ in places], "line": [line for _, line in places],
            "function": [self.sources.function(name) for name in names],
            "seconds": [round(timed[n].seconds, 9) if n in timed else 0 for n in names],
            "calls": [timed[n].calls if n in timed else 0 for n in names],
            "waited": [round(waits[n].seconds, 9) if n in waits else 0 for n in names],
            "waits": [waits[n].count if n in waits else 0 for n in names],
            "compiled": [round(compiled.get(n, 0), 9) for n in names],
            "python": [round(python.get(n, 0), 9) for n in names],
            "moved": [round(moved[n].seconds, 9) if n in moved else 0 for n in names],
            "bytes": [moved[n].bytes if n in moved else 0 for n in names],
        }  # fmt: skip

    def _findings(self) -> list[dict[str, Any]]:
        return [{"share": it.share, "text": it.text, "row": self.rows.get(it.line)} for it in self.found]

    def _kernels(self, kernels: Sequence[TimedKernel], programs: Mapping[str, int]) -> dict[str, list[Any]]:
        return {
            "name": [k.name for k in kernels], "program": [programs[k.module] for k in kernels],
            "row": [self.rows[k.place or UNKNOWN_LINE] for k in kernels],
            "labels": [_labels(k.labels) for k in kernels], "inserted": [k.is_inserted for k in kernels],
            "seconds": [round(k.seconds, 9) for k in kernels], "runs": [k.runs for k in kernels],
        }  # fmt: skip

    def _host(self, shown: TimeWindow) -> dict[str, Any]:
        """What the host and the copies of devices did, as far as it is in the window."""
        by_line = [] if self.script is None else self.script.recorded.activities
        found = _in_sight([*self.trace.host, *by_line, *map(_copy, self.trace.transfers)], shown)
        seen = sorted((it for lane in found.values() for it in lane), key=lambda it: it.start)
        lanes, names = list(found), {name: i for i, name in enumerate(dict.fromkeys(it.name for it in seen))}
        return {
            "lanes": lanes, "names": list(names), "lane": [lanes.index(it.lane) for it in seen],
            "name": [names[it.name] for it in seen], "row": [self.rows.get(it.line) for it in seen],
            "bytes": [it.bytes for it in seen], **_times(seen, shown.start),
        }  # fmt: skip

    def _programs(self, rows: Sequence[TimeRow]) -> list[dict[str, Any]]:
        functions, parts = functions_of_programs(), Counter(self.trace.calls.values())
        in_segments = {call.name for call, count in parts.items() if count > 1}  # whose types are not the function's
        types = types_of_programs(self.trace._executables, {row.name for row in rows} - in_segments)
        return [self._program(row, functions.get(row.name), types.get(row.name, [])) for row in rows]

    def _program(self, row: TimeRow, function: Function | None, types: list[str]) -> dict[str, Any]:
        known = {"place": "", "command": None, "snippet": None}
        link, why = self.inspections.get(row.name, LinkedPage(""))
        if function is not None and _place(function) and row.name not in self.trace.of_library:
            shell = command(function, types, self.sources)
            known = {"place": _place(function), "command": shell, "snippet": snippet(function)}
        return {
            "name": row.name, "calls": row.calls, "seconds": round(row.seconds, 9), **known,
            "page": link or None, "unwritten": why,
        }  # fmt: skip


def _key(it: KernelRun | TimedKernel, name: str) -> tuple[str, str, str]:
    """What a kernel is known by; a trace may lack the numbers of programs, and one from files has processes."""
    return it.process, it.program, name


def _device(run: KernelRun | Transfer) -> str:
    return " ".join(filter(None, [run.process, run.device]))


def _share(of: str, name: str, seconds: float) -> dict[str, Any]:
    return {"of": of, "name": name, "seconds": seconds}


def _labels(labels: tuple[str, ...]) -> str:
    return ", ".join(labels[:_MOST_LABELS]) + (", …" if len(labels) > _MOST_LABELS else "")


def _compiled_at(script: ScriptProfile) -> dict[str, float]:
    """The seconds of compiling the functions of the user, by the places where they are defined."""
    found: dict[str, float] = {}
    for function, entries in script.compiled.by_function().items():
        if (place := _place(function)) and not entries[0].is_own:
            found[place] = found.get(place, 0.0) + sum(entry.total for entry in entries)
    return found


def _python(script: ScriptProfile) -> dict[str, float]:
    """The seconds of the script's own Python by line, of those that take more than a trifle."""
    found: dict[str, float] = {}
    for it in script.recorded.activities:
        if it.lane == "Python":
            found[it.line] = found.get(it.line, 0.0) + (it.end - it.start) * 1e-9
    return {line: seconds for line, seconds in found.items() if seconds >= _LEAST_PYTHON * script.wall}


def _moved(script: ScriptProfile) -> dict[str, LineTransfers]:
    """What lines moved to a device, arrays of all types together."""
    found: dict[str, LineTransfers] = {}
    for it in script.transfers.lines():
        line = place(it.line)
        other = found.get(line, it._replace(seconds=0.0, bytes=0))
        found[line] = other._replace(seconds=other.seconds + it.seconds, bytes=other.bytes + it.bytes)
    return found


def _place(function: Function) -> str:
    return f"{function.file}:{function.line}" if function.file else ""


def _compilations(script: ScriptProfile) -> list[dict[str, Any]]:
    functions = sorted(script.compiled.by_function().items(), key=lambda f: -sum(e.total for e in f[1]))
    return [
        {
            "function": function.name, "place": _place(function), "count": sum(entry.compiled for entry in entries),
            "seconds": sum(entry.total for entry in entries), "cause": entries[-1].cause.text,
            "edit": entries[-1].cause.edit,
        }
        for function, entries in functions
    ]  # fmt: skip


def _timeline(shown: TimeWindow, numbers: Mapping[tuple[str, str, str], int]) -> dict[str, Any]:
    runs, start = shown.runs, shown.start
    devices = {name: i for i, name in enumerate(dict.fromkeys(map(_device, runs)))}
    return {
        "shown": shown.shown, "seconds": (shown.end - start) * 1e-9, "devices": list(devices),
        "focus": [(at - start) * 1e-9 for at in (shown.focus.start, shown.focus.end)],
        "kernel": [numbers[_key(run, run.kernel)] for run in runs],
        "device": [devices[_device(run)] for run in runs], **_times(runs, start),
    }  # fmt: skip


def _in_sight(activities: Iterable[HostActivity], shown: TimeWindow) -> dict[str, list[HostActivity]]:
    """Those in the window by lane, cut to it, and of very many the first."""
    lanes: dict[str, list[HostActivity]] = {}
    for it in activities:
        start, end = max(it.start, shown.start), min(it.end, shown.end)
        if start < end and len(lane := lanes.setdefault(it.lane, [])) < _MOST_ACTIVITIES:
            lane.append(it._replace(start=start, end=end))
    return lanes


def _copy(copy: Transfer) -> HostActivity:
    """A copy of a device in a lane of its own."""
    lane = f"copies of {_device(copy)}"
    return HostActivity(f"{copy.direction} copy", "", copy.start, copy.end, lane, bytes=copy.bytes)


def _times(events: Sequence[KernelRun] | Sequence[HostActivity], start: float) -> dict[str, list[int]]:
    """When events begin, each after the one before, and how long they take, in nanoseconds: small numbers."""
    begins = [0, *(round(event.start - start) for event in events)]
    return {
        "gap": [after - before for before, after in pairwise(begins)],
        "duration": [max(round(event.end - event.start), 0) for event in events],
    }
