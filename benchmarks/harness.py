"""Runs the workers of both libraries alternately and collects their measurements.

Every case of every round runs in a new process, alternately with xlamini and with JAX, so that a
machine that slows down or heats up slows both. `jax` and xlamini never share a process, because
both set their own methods on jaxlib's array class.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.timing import PER_SECOND, SECONDS

ROOT = Path(__file__).resolve().parent.parent
WORKER_SECONDS = 900


@dataclass(frozen=True)
class Side:
    """One of the two libraries: its name, an interpreter, its platform, and the module that provides it."""

    library: str
    python: str
    platform: str = "cpu"
    module: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of its processes; they compile, unless a case names a folder of programs."""
        platforms = dict.fromkeys(("JAX_PLATFORMS", "XLAMINI_PLATFORMS"), self.platform)
        return {**os.environ, **platforms, "XLAMINI_COMPILATION_CACHE_DIR": "", "PYTHONPATH": str(ROOT)}


@dataclass
class Row:
    """All values of one measurement, by library, and the errors of failed rounds."""

    case: str
    what: str
    unit: str = SECONDS
    target: float | None = None
    values: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def median(self, library: str) -> float | None:
        """The median over the rounds; None if any round failed."""
        values = self.values.get(library)
        return statistics.median(values) if values and library not in self.errors else None

    def ratio(self, ours: str, theirs: str) -> float | None:
        """The time of `ours` divided by that of `theirs`, from the medians; rates are inverted."""
        a, b = self.median(ours), self.median(theirs)
        if a is None or b is None:
            return None
        return b / a if self.unit == PER_SECOND else a / b


class Results:
    """The rows, in the order in which they were first measured."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Row] = {}

    def rows(self) -> list[Row]:
        """All rows, grouped by case."""
        return list(self._rows.values())

    def add(self, case: str, library: str, measurements: Sequence[dict[str, Any]]) -> None:
        """Add the measurements of one worker to their rows."""
        for m in measurements:
            new = Row(case, m["what"], m["unit"], m["target"])
            row = self._rows.setdefault((case, m["what"]), new)
            if m["error"] is None:
                row.values.setdefault(library, []).append(m["value"])
            else:
                row.errors[library] = m["error"]


def run_alternately(
    sides: Sequence[Side], cases: Sequence[str], rounds: int, *, quick: bool
) -> Iterator[tuple[str, Side, list[dict[str, Any]]]]:
    """Yield (case, side, measurements) as the workers finish, round by round, alternating the sides."""
    for _ in range(rounds):
        for case in cases:
            for side in sides:
                yield case, side, run_worker(side, case, quick=quick)


def run_worker(side: Side, case: str, *, quick: bool) -> list[dict[str, Any]]:
    """Run one case with one library in a new process; a worker that fails gives an error row."""
    try:
        return answer(side, "benchmarks.worker", side.module or side.library, case, *["--quick"] * quick)
    except RuntimeError as error:
        return [_failure(case, str(error))]


def answer(side: Side, module: str, *arguments: str) -> Any:
    """What `python -m module` prints as JSON on its last line, in a new process; RuntimeError if it fails."""
    try:
        done = subprocess.run(
            [side.python, "-m", module, *arguments],
            cwd=ROOT,
            env=side.environment,
            capture_output=True,
            text=True,
            timeout=WORKER_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no result after {WORKER_SECONDS} s") from None
    if done.returncode != 0:
        raise RuntimeError(_last_line(done.stderr) or f"exit status {done.returncode}")
    return json.loads(_last_line(done.stdout))


def _failure(case: str, error: str) -> dict[str, Any]:
    what = f"{case}: the whole case"
    return {"what": what, "value": None, "unit": SECONDS, "target": None, "error": error}


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
