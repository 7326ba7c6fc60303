"""The difference of two reports, as plain JSON: costs first, then the lines that moved, equations and kernels.

    targets     {"lost": [names], "new": [names]}: only one of the reports has these
    costs       [{"quantity", "target": name | null, "before", "after", "noise"}] for the targets that both have; null:
                unknown. `noise` is true where two measured times differ by no more than the spread of their calls
    lines       [{"file", "line", "function", "text", "before", "after"}], those that moved most first. `before` and
                `after` are {"flops", "bytes", "held", "seconds", "measured", "low", "high", "equations"}, or null where
                the line is not there.
                A line is the same if file name, function and text are; its number stands for the text where one of the
                reports has no source. How much it moved: the sum, over FLOPs, bytes, held bytes, seconds and measured
                seconds, of the change's share in the larger of both reports' totals. Seconds are those of the first
                common target. Where the two have other roofs, as that of a CPU is measured anew, no predicted times are
                compared. Measured times differ where the spreads of their calls, `low` to `high`, do not meet
    inserted    [{"target", "kind", "type", "file", "line", "function", "text", "before", "after"}]: what XLA put in for
                a line, by the kind of kernel and the type of the value that it moves, if it differs; those that moved
                most first. Lines are the same if their equations are partners, or else by their texts. `before` and
                `after` are {"runs", "bytes", "measured", "low", "high"}, or null
    parts       [{"target", "part", "before", "after", "noise"}]: the parts of the measured time of a call, in seconds:
                lines, what XLA put in, and the time between and around kernels. `noise` is true where the spreads of
                the calls meet, or are not known
    equations   {"same": count, "changed": [[row before, row after]], "lost": [rows before], "new": [rows after]} of the
                final programs, paired as `matching.py` says; changed are pairs whose keys differ
    kernels     [{"target", "same": count, "changed": [{"before": index, "after": index, "left": [rows before],
                "joined": [rows after]}], "lost": [indices], "new": [indices]}]; changed are pairs with other contents
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from xlamini.inspection.equations import Report, UserLine, final_rows, place_of, without_texts
from xlamini.inspection.line_costs import InsertionCost, Key, LineCost, insertion_costs, line_costs
from xlamini.inspection.matching import key_of, match_equations, match_kernels
from xlamini.inspection.quantities import QUANTITIES, Target, spread_of, value_of
from xlamini.inspection.wall_time import LEAST, call_parts

Cost = LineCost | InsertionCost
_MOVES = ("runs", "flops", "bytes", "held", "seconds", "measured")


def diff(before: Report, after: Report) -> dict[str, Any]:
    """What has changed from one report to another; both as dicts that `schema.read_report` has accepted."""
    partners = match_equations(before, after)
    names = [[t["name"] for t in report["targets"]] for report in (before, after)]
    common = pairs_of(before, after)
    return {
        "targets": {
            "lost": [name for name in names[0] if name not in names[1]],
            "new": [name for name in names[1] if name not in names[0]],
        },
        "costs": _costs(before, after, common),
        "lines": _lines(*without_texts(before, after), *(common[0] if common else (None, None))),
        "inserted": [row for b, a in common for row in _inserted(*without_texts(before, after), b, a, partners)],
        "parts": [row for b, a in common for row in _parts(before, after, b, a)],
        "equations": _equations(before, after, partners),
        "kernels": [_kernels(b, a, partners) for b, a in common],
    }


def pairs_of(before: Report, after: Report) -> list[tuple[Target, Target]]:
    """The targets that both reports have."""
    return [(b, a) for a in after["targets"] for b in before["targets"] if a["name"] == b["name"]]


def same_roof(before: Target, after: Target) -> bool:
    """Whether the times of two reports differ by the program alone."""
    return before["roof"] == after["roof"]


def _costs(before: Report, after: Report, common: Sequence[tuple[Target, Target]]) -> list[dict[str, Any]]:
    """Every quantity of every common target, and those that are the same for all targets once."""
    found = []
    for name, quantity in QUANTITIES.items():
        for b, a in common if quantity.of_target else [(None, None)]:
            if name == "seconds" and a is not None and b is not None and not same_roof(b, a):
                continue
            sizes = {"before": value_of(before, b, name), "after": value_of(after, a, name)}
            row = {"quantity": name, "target": None if a is None else a["name"], **sizes}
            found.append({**row, "noise": _is_noise(name, b, a)})
    return found


def _is_noise(name: str, before: Target | None, after: Target | None) -> bool:
    """Whether the spreads of two measured times meet."""
    old, new = spread_of(before, name), spread_of(after, name)
    return old is not None and new is not None and meet(old, new)


def meet(old: tuple[float, float], new: tuple[float, float]) -> bool:
    """Whether two spreads have a time in common."""
    return old[0] <= new[1] and new[0] <= old[1]


def _lines(before: Report, after: Report, old: Target | None, new: Target | None) -> list[dict[str, Any]]:
    """The lines whose costs differ, those that moved most first."""
    costs = line_costs(before, old), line_costs(after, new)
    if old is not None and new is not None and not same_roof(old, new):
        costs = _unpredicted(costs[0]), _unpredicted(costs[1])
    return _changes(*costs)


def _inserted(
    before: Report, after: Report, old: Target, new: Target, partners: Mapping[int, int]
) -> list[dict[str, Any]]:
    """What XLA puts in of other size or time, those that moved most first."""

    def line(row: int | None) -> UserLine:
        """The line of a row after, as it was before, if the row has a partner."""
        partner = None if row is None else partners.get(row)
        return place_of(after, row) if partner is None else place_of(before, partner)

    found = _changes(insertion_costs(before, old, partial(place_of, before)), insertion_costs(after, new, line))
    return [{"target": new["name"], **row} for row in found]


def _parts(before: Report, after: Report, old: Target, new: Target) -> list[dict[str, Any]]:
    """The parts of a call that was measured in both."""
    if not (old.get("measured") and new.get("measured")):
        return []
    found = []
    for (name, b), a in zip(call_parts(before, old).items(), call_parts(after, new).values(), strict=True):
        times = {"before": b.measured, "after": a.measured, "noise": not slower(b._asdict(), a._asdict())}
        found += [{"target": new["name"], "part": name, **times}] if max(b.measured, a.measured) > LEAST else []
    return found


def _changes(before: Mapping[Key, Cost], after: Mapping[Key, Cost]) -> list[dict[str, Any]]:
    """What costs more or less than before, that which moved most first."""
    totals = {name: max(_total(before.values(), name), _total(after.values(), name)) for name in _MOVES}
    found = []
    for key, last in {**before, **after}.items():
        b, a = before.get(key), after.get(key)
        pair = {"before": _plain(b), "after": _plain(a)}
        if _differ(**pair):
            found.append((-_moved(b, a, totals), {**last.place._asdict(), **pair}))
    return [line for _, line in sorted(found, key=lambda entry: (entry[0], entry[1]["file"], entry[1]["line"]))]


def _unpredicted(costs: Mapping[Key, LineCost]) -> dict[Key, LineCost]:
    """The costs without the times that follow from a roof."""
    return {key: cost._replace(seconds=None) for key, cost in costs.items()}


def _total(costs: Any, name: str) -> float:
    return sum(getattr(cost, name, 0) or 0 for cost in costs)


def _plain(cost: Cost | None) -> dict[str, Any] | None:
    return None if cost is None else {name: x for name, x in cost._asdict().items() if name != "place"}


_SPREAD = ("measured", "low", "high")


def _differ(before: dict[str, Any] | None, after: dict[str, Any] | None) -> bool:
    """Whether a line is in one report only, or a cost differs that both know."""
    if before is None or after is None:
        return True
    known = [name for name, x in before.items() if x is not None and after[name] is not None]
    return any(before[name] != after[name] for name in known if name not in _SPREAD) or slower(before, after) != 0


def slower(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    """How many seconds more a line took, as measured; 0 if that is within the spread, or not known."""
    if any(side.get(name) is None for side in (before, after) for name in _SPREAD):
        return 0.0
    near = meet((before["low"], before["high"]), (after["low"], after["high"]))
    return 0.0 if near else after["measured"] - before["measured"]


def _moved(before: Cost | None, after: Cost | None, totals: Mapping[str, float]) -> float:
    """How much a line moved: shares of the totals, summed over the costs."""
    return sum(abs(_gain(before, after, name)) / totals[name] for name in _MOVES if totals[name])


def _gain(before: Cost | None, after: Cost | None, name: str) -> float:
    if name == "measured" and before is not None and after is not None:
        return slower(before._asdict(), after._asdict())
    return (getattr(after, name, 0) or 0) - (getattr(before, name, 0) or 0)


def _equations(before: Report, after: Report, partners: Mapping[int, int]) -> dict[str, Any]:
    paired = set(partners.values())
    changed = [[b, a] for a, b in sorted(partners.items()) if key_of(before, b) != key_of(after, a)]
    return {
        "same": len(partners) - len(changed),
        "changed": changed,
        "lost": [row for row in final_rows(before) if row not in paired],
        "new": [row for row in final_rows(after) if row not in partners],
    }


def _kernels(before: Target, after: Target, partners: Mapping[int, int]) -> dict[str, Any]:
    olds, news = before["kernels"] or [], after["kernels"] or []
    pairs = match_kernels(olds, news, partners)
    paired, changed = {*pairs.values()}, []
    for a, b in sorted(pairs.items()):
        inside, earlier = {partners.get(row) for row in news[a]["rows"]}, set(olds[b]["rows"])
        joined = [row for row in news[a]["rows"] if partners.get(row) not in earlier]
        left = [row for row in olds[b]["rows"] if row not in inside]
        if joined or left:
            changed.append({"before": b, "after": a, "left": left, "joined": joined})
    return {
        "target": after["name"],
        "same": len(pairs) - len(changed),
        "changed": changed,
        "lost": [b for b in range(len(olds)) if b not in paired],
        "new": [a for a in range(len(news)) if a not in pairs],
    }
