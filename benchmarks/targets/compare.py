"""Lowers programs with both libraries and compiles both texts with the same compilers, each step in a new process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import Side, answer
from benchmarks.targets.counts import Comparison, Counts, failure


def compare(sides: Sequence[Side], names: Sequence[str], targets: Sequence[str]) -> Iterator[Comparison]:
    """Yield the comparison of each program for each target; `sides` begins with xlamini's, which compiles."""
    for name in names:
        with TemporaryDirectory() as folder:
            lowered = {side.library: _lowered(side, name, folder, targets) for side in sides}
            for target in targets:
                files = {library: found[target] for library, found in lowered.items()}
                yield Comparison(name, target, _counts(sides[0], target, files))


def _lowered(side: Side, name: str, folder: str, targets: Sequence[str]) -> dict[str, Any]:
    """For each target the file with the program's text, or the error."""
    try:
        return answer(side, "benchmarks.targets.lower", side.library, name, folder, *targets)
    except RuntimeError as error:
        return dict.fromkeys(targets, failure(error))


def _counts(side: Side, target: str, files: dict[str, Any]) -> dict[str, Counts | str]:
    paths = [found["path"] for found in files.values() if "path" in found]
    try:
        measured = answer(side, "benchmarks.targets.measure", target, *paths) if paths else {}
    except RuntimeError as error:
        measured = dict.fromkeys(paths, failure(error))
    found = {library: measured.get(file.get("path"), file) for library, file in files.items()}
    return {library: each["error"] if "error" in each else Counts(**each) for library, each in found.items()}


def names_of(asked: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The programs asked for; all of them if none are. RuntimeError for one that does not exist."""
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        raise RuntimeError(f"there is no program {unknown[0]!r} for targets; there are {', '.join(known)}")
    return list(asked or known)
