"""The quantities of a report that limits and comparisons speak of, each a number for a target."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core.flags.environment_variables import near
from xlamini.inspection.equations import Report
from xlamini.inspection.units import shown

Target = Mapping[str, Any]


class Quantity(NamedTuple):
    """What it is in words, the family of its units, and how a target's is read: None where the report lacks it."""

    words: str
    family: str
    read: Callable[[Report, Target], float | None]
    of_target: bool = True


def _of(part: str, field: str) -> Callable[[Report, Target], float | None]:
    return lambda _, target: (target.get(part) or {}).get(field)


def _count(part: str) -> Callable[[Report, Target], float | None]:
    def count(_: Report, target: Target) -> float | None:
        known = target["hlo"] is not None and part not in (target["unavailable"] or ())
        return len(target[part] or ()) if known else None

    return count


def _equations(report: Report, _: Target) -> float | None:
    return None if report["final"] is None else report["stages"][report["final"]]["count"]


QUANTITIES = {
    "peak": Quantity("peak memory, as the compiler reports it", "bytes", _of("memory", "peak")),
    "temporaries": Quantity("temporary buffers, as the compiler reports them", "bytes", _of("memory", "temporaries")),
    "flops": Quantity("floating-point operations of a call", "count", _of("cost", "flops")),
    "bytes": Quantity("bytes that a call moves", "bytes", _of("cost", "bytes")),
    "kernels": Quantity("kernels in the optimized program", "count", _count("kernels")),
    "collectives": Quantity("collectives in the optimized program", "count", _count("collectives")),
    "seconds": Quantity("predicted time of a call", "seconds", _of("prediction", "seconds")),
    "time": Quantity("measured time of a call, the median", "seconds", _of("measured", "seconds")),
    "equations": Quantity("equations of the program that is lowered", "count", _equations, of_target=False),
}
"""By the names that `check` takes."""


def value_of(report: Report, target: Target | None, name: str) -> float | None:
    """A quantity of a target, or of the whole report if it is the same for all; None where the report lacks it."""
    if target is None or not QUANTITIES[name].of_target:
        return QUANTITIES[name].read(report, {})
    return None if target["error"] else QUANTITIES[name].read(report, target)


def spread_of(target: Target | None, name: str) -> tuple[float, float] | None:
    """From where to where a quantity lies, if it was measured: half of the calls took times between these."""
    measured = (target or {}).get("measured") if name == "time" else None
    return None if measured is None else (measured["low"], measured["high"])


def why_unknown(report: Report, target: Target | None) -> str:
    """Why the report does not have a quantity of this target, in words."""
    failure = report["failure"]
    if target is not None and target["error"]:
        return target["error"]
    if failure:
        return f"{failure['stage']} failed: {failure['error']}"
    return "; ".join(((target or {}).get("unavailable") or {}).values()) or "its compiler does not report it"


def find_target(report: Report, name: str) -> Target:
    """The target of this name; ValueError with the nearest name if there is none."""
    for target in report["targets"]:
        if target["name"] == name:
            return target
    names = [t["name"] for t in report["targets"]]
    raise ValueError(f"target: the report has no {name!r}, only {', '.join(names) or 'none at all'}{near(name, names)}")


def alive_at_peak(
    moments: Sequence[Mapping[str, Any]], values: Sequence[Mapping[str, Any]], until: str
) -> list[Mapping[str, Any]]:
    """The values alive at the first moment of most bytes; `first` and `until` count moments."""
    peak = max(range(len(moments)), key=lambda i: moments[i]["bytes"], default=0)
    return [value for value in values if value["first"] <= peak <= value[until]]


def side_by_side(report: Report, target: Target) -> dict[str, Any]:
    """The quantities of a target by their names, and what else is compared between targets."""
    memory, seconds = target["memory"] or {}, target["seconds"] or {}
    peak, capacity = memory.get("peak"), memory.get("capacity")
    full = None if peak is None or capacity is None else peak / capacity
    longest = sorted(target["kernels"] or (), key=lambda k: -(k["seconds"] or 0))
    return {
        **{name: value_of(report, target, name) for name in QUANTITIES},
        "name": target["name"],
        "place": f"{target['devices'] or 1} {target['device']}",
        "capacity": capacity,
        "fits": None if full is None else full <= 1,
        "full": full,
        "roof": target["roof"],
        "lowered": seconds.get("lower"),
        "compiled": seconds.get("compile"),
        "longest": [f"{k['name']} {shown(k['seconds'], 'seconds')}" for k in longest],
    }
