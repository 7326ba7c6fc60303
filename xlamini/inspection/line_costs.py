"""What each line of the user's files costs, summed over the equations of the final program that come from it.

A kernel's equations share its seconds in proportion to their FLOPs plus bytes: the report has the `shares`. A kernel
without equations has no line. What XLA put in has measured time of its own, which counts for no line.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.inspection.equations import NOWHERE, Report, UserLine, base_name, final_rows, place_of
from xlamini.inspection.quantities import alive_at_peak

Key = tuple[Any, ...]
"""What names a line in two reports: the key of its place."""
Amounts = dict[Key, tuple[UserLine, float]]
"""How much of something each line has."""


class LineCost(NamedTuple):
    """The sums of a line; `seconds` is None if no kernel of the target has a time, `measured` if none was measured.

    Half of the calls took `low` to `high` there.
    """

    place: UserLine
    equations: int
    flops: float
    bytes: float
    held: float
    seconds: float | None
    measured: float | None = None
    low: float | None = None
    high: float | None = None


TIMES = ("seconds", "low", "high")
"""The parts of a measured time that add up."""


def line_costs(
    report: Report, target: Mapping[str, Any] | None = None, key: Callable[[UserLine], Key] = lambda place: place.key
) -> dict[Key, LineCost]:
    """The cost of each line, by the key of its place; times are those of the target's kernels."""
    columns, seconds = report["equations"], row_seconds(target)
    found: dict[Key, LineCost] = {}
    for row in final_rows(report):
        place = place_of(report, row)
        old = found.get(key(place)) or LineCost(place, 0, 0, 0, 0, 0.0 if seconds else None)
        found[key(place)] = LineCost(
            old.place,
            old.equations + 1,
            old.flops + columns["flops"][row],
            old.bytes + columns["bytes"][row],
            old.held + columns["held"][row],
            old.seconds,
        )
    for row, time in seconds.items():  # of the program that was lowered for the target, which may be another one
        place = place_of(report, row)
        old = found.get(key(place)) or LineCost(place, 0, 0, 0, 0, 0.0)
        found[key(place)] = old._replace(seconds=(old.seconds or 0.0) + time)
    if has_times(target):
        _add_measured(report, target or {}, found, key)
    return found


def has_times(target: Mapping[str, Any] | None) -> bool:
    """Whether the profiler saw kernels of a target."""
    return any(kernel.get("measured") for kernel in (target or {}).get("kernels") or ())


def _add_measured(
    report: Report, target: Mapping[str, Any], found: dict[Key, LineCost], key: Callable[[UserLine], Key]
) -> None:
    """Give each line its measured time."""
    names = ("measured", "low", "high")
    for each, cost in found.items():
        found[each] = cost._replace(**dict.fromkeys(names, 0.0))
    for name, part in zip(names, TIMES, strict=True):
        for row, time in row_measured(target, part).items():
            place = place_of(report, row)
            old = found.get(key(place)) or LineCost(place, 0, 0, 0, 0, None, 0.0, 0.0, 0.0)
            found[key(place)] = old._replace(**{name: getattr(old, name) + time})


class Insertion(NamedTuple):
    """What XLA puts in for a line: the kind of kernel, such as a copy, and the type of the value that it moves."""

    kind: str
    type: str
    file: str
    function: str
    line: int
    text: str


class InsertionCost(NamedTuple):
    """The sums of what XLA put in for one line and value; the times are None if none was measured."""

    place: Insertion
    runs: int
    bytes: float
    measured: float | None
    low: float | None
    high: float | None


def insertion_costs(
    report: Report, target: Mapping[str, Any], line: Callable[[int | None], UserLine]
) -> dict[Key, InsertionCost]:
    """The cost of what XLA put in, by kinds, values and the keys of lines; `line` gives that of a row."""
    found = defaultdict[Key, list[tuple[Insertion, Mapping[str, Any]]]](list)
    for kernel in target["kernels"] or ():
        if kernel["inserted"]:
            value, row = (kernel["kind"], kernel["type"]), next(iter(kernel["rows"]), None)
            found[(*value, *line(row).key)].append((Insertion(*value, *place_of(report, row)), kernel))
    timed = has_times(target)
    return {key: _insertion_cost(some[0][0], [kernel for _, kernel in some], timed) for key, some in found.items()}


def _insertion_cost(of: Insertion, kernels: Sequence[Mapping[str, Any]], timed: bool) -> InsertionCost:
    times = (sum((kernel.get("measured") or {}).get(time, 0.0) for kernel in kernels) for time in TIMES)
    sums = (sum(kernel[name] for kernel in kernels) for name in ("runs", "bytes"))
    return InsertionCost(of, *sums, *(times if timed else (None, None, None)))


def row_seconds(target: Mapping[str, Any] | None) -> dict[int, float]:
    """The seconds of each equation that is in a kernel with a time; empty if no kernel has one."""
    return _by_row(target, lambda kernel: kernel["seconds"])


def row_measured(target: Mapping[str, Any] | None, part: str = "seconds") -> dict[int, float]:
    """The measured seconds of each equation, those of kernels that XLA put in left out."""
    return _by_row(target, lambda kernel: None if kernel["inserted"] else (kernel.get("measured") or {}).get(part))


def _by_row(target: Mapping[str, Any] | None, seconds: Callable[[Mapping[str, Any]], float | None]) -> dict[int, float]:
    found = Counter[int]()
    for kernel in (target or {}).get("kernels") or ():
        time = seconds(kernel)
        for row, share in zip(kernel["rows"], kernel["shares"], strict=True):
            if time is not None:
                found[row] += time * share
    return dict(found)


def amounts(report: Report, quantity: str, target: Mapping[str, Any] | None) -> Amounts:
    """How much of a quantity of `quantities.py` each line has, by the key of its place."""
    if quantity in _BY_ROW:
        costs = line_costs(report, target).values()
        return {c.place.key: (c.place, getattr(c, _BY_ROW[quantity]) or 0) for c in costs}
    found: Amounts = {}
    for place, amount in _PARTS[quantity](report, target or {}):
        found[place.key] = place, found.get(place.key, (place, 0))[1] + amount
    return found


_BY_ROW = {**{name: name for name in ("flops", "bytes", "seconds", "equations")}, "time": "measured"}
"""The quantities that equations have, each with its name in the cost of a line."""


def _alive_at_peak(report: Report, _: Mapping[str, Any]) -> list[tuple[UserLine, float]]:
    """The values of xlamini's own plan that are alive at its peak: the compiler's buffers have no lines."""
    memory = report["memory"]
    if memory is None or not memory["moments"]:
        return []
    alive = alive_at_peak(memory["moments"], memory["values"], "until")
    return [(place_of(report, v["made"]), v["bytes"]) for v in alive if v["made"] is not None]


def _kernels(report: Report, target: Mapping[str, Any]) -> list[tuple[UserLine, float]]:
    return [(place_of(report, next(iter(k["rows"]), None)), 1) for k in target.get("kernels") or ()]


def _collectives(report: Report, target: Mapping[str, Any]) -> list[tuple[UserLine, float]]:
    return [(_collective_place(report, c), 1) for c in target.get("collectives") or ()]


def _collective_place(report: Report, collective: Mapping[str, Any]) -> UserLine:
    if collective["row"] is not None:
        return place_of(report, collective["row"])
    file, _, line = collective["line"].rpartition(":")
    return UserLine(file, "", int(line), "") if file and line.isdigit() else NOWHERE


_PARTS: dict[str, Callable[[Report, Mapping[str, Any]], list[tuple[UserLine, float]]]] = {
    "peak": _alive_at_peak,
    "temporaries": _alive_at_peak,
    "kernels": _kernels,
    "collectives": _collectives,
}


class Mover(NamedTuple):
    """The line whose share of a quantity has changed most, or that has the most where there is no earlier report."""

    place: UserLine
    before: float | None
    after: float

    @property
    def gain(self) -> float:
        return self.after - (self.before or 0)


def movers(before: Amounts | None, after: Amounts) -> list[Mover]:
    """The lines whose amounts differ, those that differ most first; without `before`, the lines with the most."""
    found = []
    for key in dict.fromkeys([*after, *(before or ())]):
        place, new = after.get(key) or ((before or {})[key][0], 0)
        old = None if before is None else before.get(key, (place, 0))[1]
        if place.file and new != old:
            found.append(Mover(place, old, new))
    return sorted(found, key=lambda m: (-abs(m.gain), base_name(m.place.file), m.place.line))
