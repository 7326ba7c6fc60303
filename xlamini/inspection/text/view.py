"""What a screen is given: its description, the report, and what of it is to be shown how."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from xlamini.inspection import layout
from xlamini.inspection.equations import Report, place_of
from xlamini.inspection.layout import wrapped
from xlamini.inspection.quantities import Target, why_unknown
from xlamini.inspection.units import FAMILIES, UNKNOWN, shown

Item = Mapping[str, Any]
NUMBERS: set[str] = {*FAMILIES, "integer", "number", "share", "amount"}
"""The units of columns that are aligned at the right."""


class View(NamedTuple):
    """A report with the choices of a reader."""

    report: Report
    screen: Mapping[str, Any]
    width: int
    limit: int
    targets: Sequence[Target]
    row: int | str | None = None
    stage: int | None = None
    against: Report | None = None

    def table(self, name: str, items: Iterable[Item], target: Target | None = None) -> list[str]:
        """A table of the screen with at most `limit` rows, and a line that says how many more there are."""
        table, (head, *rows) = self.screen["tables"][name], self.cells(name, items, target)
        if not rows:
            return self.say(table["none"]) if "none" in table else []
        aligned = [i for i, column in enumerate(_columns(table)) if column.get("unit") in NUMBERS]
        hint = f"; limit={len(rows)} shows all"
        lines = layout.table(head, rows, self.limit, aligned, self.width, hint)
        return [*([table["title"]] if "title" in table else ()), *lines]

    def cells(self, name: str, items: Iterable[Item], target: Target | None = None) -> list[list[str]]:
        """The head of a table of the screen, then its rows in their order; `target` has the kernels that they name."""
        table = self.screen["tables"][name]
        shown_columns, keys = _columns(table), table.get("sort", ())
        ordered = sorted(items, key=lambda item: [-(_value(item, key) or 0) for key in keys])
        rows = [[self._cell(column, item, target) for column in shown_columns] for item in ordered]
        return [[column["title"] for column in shown_columns], *rows]

    def _cell(self, column: Mapping[str, Any], item: Item, target: Target | None) -> str:
        value, unit = _value(item, column["field"]), column.get("unit", "text")
        if value in (None, [], column.get("usual")):
            return column.get("none", UNKNOWN if unit in NUMBERS else "")
        if unit in FAMILIES:
            return shown(value, unit)
        if "words" in column:
            return column["words"][value]
        if unit in ("number", "share"):
            return f"{value:.4g}" if unit == "number" else f"{100 * value:.0f} %"
        values = value if isinstance(value, list) else [value]
        return ", ".join(dict.fromkeys(self._name(unit, each, target) for each in values))

    def _name(self, unit: str, value: Any, target: Target | None) -> str:
        """A value as text; those of some units are indices of what has a name."""
        if unit == "place":
            return str(place_of(self.report, value))
        if unit == "kernel" and target is not None:
            return target["kernels"][value]["name"]
        return self.report["equations"]["label"][value] if unit == "label" else str(value)

    def say(self, sentence: str, indent: str = "") -> list[str]:
        """A sentence, wrapped."""
        return wrapped(sentence, self.width, indent)

    def measured(self, target: Target) -> list[str]:
        """What was measured of a target, in words."""
        found = target.get("measured")
        return self.say(f"measured: {found['source']}") if found else []

    def by_target(self, lines: Callable[[View, Target], Iterator[str]], *parts: str) -> Iterator[str]:
        """A section for each target; in its place one line for a target that lacks one of the parts."""
        for target in self.targets:
            yield ""
            if self.missing(target, *parts) is None:
                yield f"{target['name']} ({target['device']})"
            yield from self.part(target, lines(self, target), *parts)

    def part(self, target: Target, lines: Iterable[str] = (), *parts: str) -> Iterator[str]:
        """The lines, or why a target lacks one of the parts that they need."""
        reason = self.missing(target, *parts)
        yield from lines if reason is None else self.say(f"not available for {target['name']}: {reason}")

    def missing(self, target: Target, *parts: str) -> str | None:
        """Why a target has not all of these parts; None if it has."""
        reasons = target["unavailable"] or {}
        if target["error"] or (self.report["failure"] and target["hlo"] is None):
            return why_unknown(self.report, target)
        named = next((reasons[part] for part in parts if part in reasons), None)
        lacks = next((part for part in parts if target.get(part) is None), None)
        return named or (lacks and f"the report does not have its {lacks}")


def _columns(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [column for column in table["columns"] if column.get("on") != "page"]


def _value(item: Item, field: str) -> Any:
    """A field, or a part of one as `roof.flops`."""
    return reduce(_part, field.split("."), item)


def _part(value: Any, name: str) -> Any:
    """A part of a dict, or an element of a list; None where there is none."""
    if isinstance(value, list):
        return next(iter(value[int(name) :]), None)
    return None if value is None else value.get(name)
