"""Before processes run a program together for the first time: do all of them run the same?

Otherwise their collectives would not meet: they would wait for ever, or take each other's numbers. And before they make
one array of a value that each of them has: is it the same?
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.errors import ProcessError
from xlamini.core.frames import user_line
from xlamini.runtime.processes.group import here, numbered, spans_processes

_MOST_LINES = 5000
_WHAT = "the first run of a program"

Lines = Callable[[], list[tuple[str, str]]]
"""A program's operations, each with the user's line, asked for only where programs differ."""


class _Run(NamedTuple):
    name: str
    fingerprint: str
    line: str

    def __str__(self) -> str:
        return f"{self.name} (called at {self.line})"


def check_same_program(devices: Sequence[Any], name: str, fingerprint: str, lines: Lines) -> None:
    """ProcessError, in all processes, if those that these devices belong to are about to run different programs."""
    processes, group = spans_processes(devices), here.group
    if group is None or not processes:
        return
    said = group.exchange(_WHAT, json.dumps([name, fingerprint, user_line()]), processes)
    runs = {p: _Run(*json.loads(text)) for p, text in said.items()}
    if len({run.fingerprint for run in runs.values()}) == 1:
        return
    written = group.exchange("the comparison of different programs", json.dumps(lines()[:_MOST_LINES]), processes)
    raise ProcessError(_difference(runs, {p: json.loads(text) for p, text in written.items()}))


def check_same_value(devices: Sequence[Any], x: np.ndarray) -> None:
    """ProcessError, in all processes, if those that these devices belong to put different arrays onto them."""
    processes, group = spans_processes(devices), here.group
    if group is None or not processes:
        return
    own = f"{x.dtype}{list(x.shape)} {hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()}"
    said = group.exchange("device_put of a value that all have", own, processes)
    first = processes[0]
    if others := [p for p in processes if said[p] != said[first]]:
        raise ProcessError(
            f"device_put: the value differs between processes: {numbered(others)} has not that of process {first}; if "
            "each has a part of the whole, make_array_from_process_local_data puts them together"
        )


def _difference(runs: dict[int, _Run], written: dict[int, list[Any]]) -> str:
    first, *others = sorted(runs)
    other = next(p for p in others if runs[p].fingerprint != runs[first].fingerprint)
    alike = [[p for p in runs if runs[p].fingerprint == runs[q].fingerprint] for q in (first, other)]
    who = ", ".join(f"{numbered(ps)} {runs[ps[0]]}" for ps in alike)
    return (
        f"processes are about to run different programs together: {who}. {_first_difference(written, first, other)}; "
        "all must run the same programs in the same order: look for what depends on process_index(), on the time, or "
        "on the order of a set"
    )


def _first_difference(written: dict[int, list[Any]], first: int, other: int) -> str:
    for pair in zip_longest(written[first], written[other]):
        texts = [entry and entry[0] for entry in pair]
        if texts[0] != texts[1]:
            at = [_operation(entry) for entry in pair]
            return f"They differ first in {at[0]} of process {first}, {at[1]} of process {other}"
    return "Their operations are the same; shardings, donation or options differ"


def _operation(entry: Any) -> str:
    return "the end" if entry is None else f"{entry[0]!r} at {entry[1]}"
