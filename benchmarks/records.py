"""The results as data: a line of `benchmarks/results/DATE.jsonl` for each row of a run. The newest of each row counts.

`--record MACHINE` of `python -m benchmarks` and of `python -m benchmarks.networks` adds lines. RESULTS.md (`page.py`),
the pictures of the site and the curves of docs/scale.md (`growth.py`) are made of them.

    python -m benchmarks.records    # the versions in this environment, which a run asks of each side
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.harness import ROOT, Row, Side, answer
from benchmarks.timing import PER_SECOND, SECONDS

FOLDER = ROOT / "benchmarks" / "results"
PACKAGES = ("jaxlib", "jax", "libtpu", "onnxruntime", "numpy")

Numbers = dict[str, dict[str, float]]
"""By library and by name. The first of a library is compared: its median, its least, or a count."""


@dataclass(frozen=True)
class Record:
    """One row of one run. `platform` is that of the device, or the target that a program was compiled for."""

    case: str
    row: str
    numbers: Numbers
    unit: str = SECONDS
    target: float | None = None
    platform: str = "cpu"
    date: str = ""
    machine: str = ""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)

    def number(self, library: str, what: str = "") -> float | None:
        """A number of a library by its name, or the one that is compared; None if there is none."""
        found = self.numbers.get(library, {})
        return found.get(what) if what else next(iter(found.values()), None)

    def ratio(self, what: str = "", other: str = "jax") -> float | None:
        """xlamini's number divided by that of another library; rates are inverted, and none of each is equal."""
        ours, theirs = self.number("xlamini", what), self.number(other, what)
        if ours is None or theirs is None:
            return None
        if self.unit == PER_SECOND:
            ours, theirs = theirs, ours
        return ours / theirs if theirs else math.inf if ours else 1.0

    @property
    def missed(self) -> bool:
        """Whether the ratio, to two digits, is above the target, or that of a compiled program's memory."""
        ratios = [ratio for what in ("", "memory") if (ratio := self.ratio(what)) is not None]
        return self.target is not None and any(round(ratio, 2) > self.target for ratio in ratios)


def records(rows: Iterable[Row], platform: str) -> list[Record]:
    """The rows of a run, without those that failed."""
    measured = [row for row in rows if not row.errors]
    return [Record(row.case, row.what, _numbers(row), row.unit, row.target, platform) for row in measured]


def _numbers(row: Row) -> Numbers:
    return {
        library: {"median": statistics.median(values), "least": min(values), "most": max(values)}
        for library, values in row.values.items()
    }


def write(found: Sequence[Record], machine: str, sides: Sequence[Side], folder: Path = FOLDER) -> None:
    """Add the rows of a run to the file of the day. The words for the machine also say whether it was quiet."""
    date = datetime.date.today().isoformat()
    versions: dict[str, str] = {}
    for side in reversed(sides):  # the first is xlamini's, whose versions count where several have a package
        versions |= answer(side, "benchmarks.records")
    with open(folder / f"{date}.jsonl", "a") as file:
        for each in found:
            numbers = {library: _rounded(values) for library, values in each.numbers.items()}
            full = dataclasses.replace(each, numbers=numbers, date=date, machine=machine, versions=versions)
            file.write(json.dumps(dataclasses.asdict(full), ensure_ascii=False) + "\n")


def _rounded(numbers: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{number:.6g}") if isinstance(number, float) else number for name, number in numbers.items()}


def newest(folder: Path = FOLDER) -> list[Record]:
    """The newest record of each row of each platform, in the order in which the rows were first measured."""
    found: dict[tuple[str, str, str], Record] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            each = Record(**json.loads(line))
            found[each.case, each.row, each.platform] = each
    return list(found.values())


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that matter, as far as they are installed."""
    installed = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    return {"python": platform.python_version(), **{name: installed[name] for name in PACKAGES if name in installed}}


if __name__ == "__main__":
    print(json.dumps(versions()))
