"""SPMD checks: before a program's first run, all processes compare its fingerprint.

Collectives of different programs would wait for ever, or exchange the wrong data. Likewise, before processes make one
array of a value that each of them holds, they compare a hash of the value.
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ProcessError
from xlamini.core.errors.frames import user_line
from xlamini.runtime.processes.group import here, numbered, spans_processes

_MOST_LINES = 5000
_STEP = "the first run of a program"

Lines = Callable[[], list[tuple[str, str]]]
"""A program's operations, each with the user's source line; called only where programs differ."""


class _AgreementRun(NamedTuple):
    name: str
    fingerprint: str
    line: str

    def __str__(self) -> str:
        return f"{self.name} (called at {self.line})"


def check_same_program(devices: Sequence[Any], name: str, fingerprint: str, lines: Lines) -> None:
    """Raise ProcessError, in all processes that own these devices, if they are about to run different programs."""
    processes, group = spans_processes(devices), here.group
    if group is None or not processes:
        return
    replies = group.exchange(_STEP, json.dumps([name, fingerprint, user_line()]), processes)
    runs = {p: _AgreementRun(*json.loads(text)) for p, text in replies.items()}
    if len({run.fingerprint for run in runs.values()}) == 1:
        return
    operations = group.exchange("the comparison of different programs", json.dumps(lines()[:_MOST_LINES]), processes)
    raise ProcessError(_difference(runs, {p: json.loads(text) for p, text in operations.items()}))


def check_same_value(devices: Sequence[Any], x: np.ndarray) -> None:
    """Raise ProcessError, in all processes that own these devices, if they put different arrays onto them."""
    processes, group = spans_processes(devices), here.group
    if group is None or not processes:
        return
    own = f"{x.dtype}{list(x.shape)} {hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()}"
    replies = group.exchange("device_put of a value that all have", own, processes)
    first = processes[0]
    if others := [p for p in processes if replies[p] != replies[first]]:
        raise ProcessError(
            f"device_put: the value differs between processes: {numbered(others)} has not that of process {first}; if "
            "each has a part of the whole, make_array_from_process_local_data puts them together"
        )


def _difference(runs: dict[int, _AgreementRun], operations: dict[int, list[Any]]) -> str:
    first, *others = sorted(runs)
    other = next(p for p in others if runs[p].fingerprint != runs[first].fingerprint)
    groups = [[p for p in runs if runs[p].fingerprint == runs[q].fingerprint] for q in (first, other)]
    who = ", ".join(f"{numbered(ps)} {runs[ps[0]]}" for ps in groups)
    return (
        f"processes are about to run different programs together: {who}. {_first_difference(operations, first, other)}"
        "; all must run the same programs in the same order: look for what depends on process_index(), on the time, or "
        "on the order of a set"
    )


def _first_difference(operations: dict[int, list[Any]], first: int, other: int) -> str:
    for pair in zip_longest(operations[first], operations[other]):
        texts = [entry and entry[0] for entry in pair]
        if texts[0] != texts[1]:
            at = [_operation(entry) for entry in pair]
            return f"They differ first in {at[0]} of process {first}, {at[1]} of process {other}"
    return "Their operations are the same; shardings, donation or options differ"


def _operation(entry: Any) -> str:
    return "the end" if entry is None else f"{entry[0]!r} at {entry[1]}"
