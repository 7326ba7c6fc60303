"""The memory plan as the schema has it: what is alive after each equation, who made it, and who still needs it."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from xlamini.core import Equation, Jaxpr, Var
from xlamini.inspection.table import Table
from xlamini.staging.compile.liveness import Liveness, inner_peak
from xlamini.staging.compile.memory_plan import MemoryPlan

MOST_VALUES = 2000
"""How many values the report lists, the largest."""


class Timeline(Liveness):
    """Liveness that notes the bytes in memory at each equation that stores something."""

    def __init__(self, jaxpr: Jaxpr, platform: str):
        super().__init__(jaxpr, platform)
        self.moments: list[tuple[Equation, int]] = []
        self.stored: dict[Var, int] = {}

    def _note(self, eqn: Equation, taken: dict[Var, Var]) -> None:
        super()._note(eqn, taken)
        now = self._bytes_at(eqn, taken, inner_peak(eqn, self.platform))
        self.stored.update(dict.fromkeys(set(self.alive) - set(self.stored), len(self.moments)))
        self.moments.append((eqn, now))


def memory_of(plan: MemoryPlan, program: Jaxpr, rows: dict[Equation, int], table: Table) -> dict[str, Any]:
    """The section of a plan; `program` is the jaxpr that is lowered, and `rows` are those of its equations."""
    timeline = Timeline(program, plan.platform)
    timeline.run()
    fixed = plan.arguments + plan.results - plan.donated
    values = sorted(_values(timeline, rows, table), key=lambda value: -value["bytes"])[:MOST_VALUES]
    at = plan.moment.path[0] if plan.moment.path else None
    _mark_held(values, max(timeline.moments, key=lambda moment: moment[1], default=None), timeline, table)
    return {
        "peak": plan.peak,
        "arguments": plan.arguments,
        "results": plan.results,
        "temporaries": plan.temporaries,
        "at": _row(at, rows, table),
        "moments": [{"row": _row(eqn, rows, table), "bytes": fixed + n} for eqn, n in timeline.moments],
        "values": values,
        "groups": _groups(values, rows, table),
        "left_out": list(plan.left_out),
    }


def _mark_held(values: Sequence[dict[str, Any]], peak: Any, timeline: Timeline, table: Table) -> None:
    """Give the rows that made them the bytes that only the backward pass needs of what is alive at the peak."""
    at = timeline.moments.index(peak) if peak else 0
    for value in values:
        if value["kept_for_backward"] and value["first"] <= at <= value["until"]:
            table.rows[value["made"]].held += value["bytes"]


def _row(eqn: Equation | None, rows: dict[Equation, int], table: Table) -> int | None:
    """The row of an equation of the program, or the nearest one that it comes from."""
    if eqn is None:
        return None
    return rows[eqn] if eqn in rows else table.parent_of(eqn, 0)


def _values(timeline: Timeline, rows: dict[Equation, int], table: Table) -> list[dict[str, Any]]:
    positions: dict[Equation | None, int] = {eqn: i for i, (eqn, _) in enumerate(timeline.moments)}
    end = len(timeline.moments)
    return [
        _value(var, first, positions.get(timeline.last.get(var), end), timeline, rows, table)
        for var, first in timeline.stored.items()
    ]


def _value(
    var: Var, first: int, until: int, timeline: Timeline, rows: dict[Equation, int], table: Table
) -> dict[str, Any]:
    made = _row(timeline.storage.makers.get(var), rows, table)
    last = _row(timeline.last.get(var), rows, table)
    forward = made is not None and table.rows[made].direction != "backward"
    return {
        "type": var.aval.str_short(),
        "bytes": var.aval.nbytes,
        "made": made,
        "last": last,
        "first": first,
        "until": until,
        "variable": None if made is None else table.rows[made].variable,
        "kept_for_backward": forward and last is not None and table.rows[last].direction == "backward",
    }


def _groups(values: Sequence[dict[str, Any]], rows: dict[Equation, int], table: Table) -> list[dict[str, Any]]:
    """What recomputing a group in the backward pass saves and adds; a group is a named scope, or a line without one."""
    saves: dict[str, int] = defaultdict(int)
    for value in values:
        if value["kept_for_backward"]:
            saves[_group(table, value["made"])] += value["bytes"]
    adds: dict[str, int] = defaultdict(int)
    for number in rows.values():
        if table.rows[number].direction == "forward":
            adds[_group(table, number)] += table.rows[number].flops
    order = sorted(saves, key=lambda group: -saves[group])
    return [{"scope": group, "saves": saves[group], "adds": adds[group]} for group in order]


def _group(table: Table, number: int) -> str:
    row = table.rows[number]
    return row.scope or f"line {row.line}"
