"""The stages that do not depend on a compiler: the jaxprs that rewrites took and gave, and StableHLO."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from xlamini.core import Equation, Jaxpr
from xlamini.core.program.printing import lines_with_equations
from xlamini.inspection.recording import RecordedRewrite
from xlamini.inspection.stablehlo import ModuleText
from xlamini.inspection.table import Table
from xlamini.inspection.xla.hlo import label_of

WIDTH = 100
NAMES = {"dce": "unused equations dropped", "batch": "vmap", "expand": "primitives expanded"}
"""Titles of rewrites whose name is not a word of users."""
PASSES = {
    "outline": "repeated blocks outlined",
    "specialize": "in the forms of {}",
    "cut": "with calls that {} computes by themselves",
}
"""Titles of the passes of the back end, for a platform."""


class Stages:
    """The stages so far, as the schema has them, with the table of their equations."""

    def __init__(self) -> None:
        self.table: Table = Table()
        self.found: list[dict[str, Any]] = []
        self._numbers: dict[Jaxpr, int] = {}
        self._rows: dict[Jaxpr, dict[Equation, int]] = {}

    def add(self, program: Jaxpr, title: str, **facts: Any) -> int:
        """Add a program as a stage, unless it is one already; the number of its stage."""
        known = self._numbers.get(program)
        if known is not None:
            return known
        number = self._numbers[program] = len(self.found)
        rows = self._rows[program] = self.table.add(number, program)
        lines, marks = [], []
        for text, equations in lines_with_equations(program, WIDTH):
            lines.append(text)
            own = [(rows[eqn], short) for eqn, short in equations if eqn in rows]  # those of forms have no rows
            marks.append([row for row, _ in own])
            for row, short in own:
                self.table.rows[row].text = short
        self.found.append(stage_of("jaxpr", title, lines, marks, len(rows), **facts))
        return number

    def add_rewrite(self, rewrite: RecordedRewrite) -> None:
        """Add the programs that a rewrite gave, and the one that it took if it is not there."""
        taken = self.add_traced(rewrite.taken)
        for part, program in zip(_parts(rewrite), rewrite.given, strict=True):
            title = f"{rewrite.taken.name}: {NAMES.get(rewrite.name, rewrite.name)}{part}"
            self.add(program, title, of=taken, rewrite=rewrite.name, seconds=rewrite.seconds)

    def add_traced(self, program: Jaxpr) -> int:
        """Add a program that no rewrite gave; one around a function that was rewritten may have that one's name."""
        title = f"{program.name}: traced"
        has_name = any(stage["title"] == title for stage in self.found)
        return self.add(program, f"{title}, with what rewrites gave" if has_name else title)

    def add_stablehlo(self, text: ModuleText, platform: str, final: int, **facts: Any) -> int:
        """Add the module that was made of the stage `final` for a target; the number of its stage."""
        row_of = self.row_of_label(final)
        marks = [_numbers(row_of(label) for label in [label_of(name)] if label) for name in text.names]
        title = f"StableHLO for {platform}"
        self.found.append(stage_of("stablehlo", title, text.lines, marks, text.count, of=final, **facts))
        return len(self.found) - 1

    def rows_of(self, program: Jaxpr) -> dict[Equation, int]:
        """The rows of a program that is a stage."""
        return self._rows[program]

    def row_of_label(self, stage: int) -> Callable[[str], int | None]:
        """A function that finds the row with a label among those of a stage."""
        return {row.label: number for number, row in enumerate(self.table.rows) if row.stage == stage}.get


def stage_of(
    kind: str, title: str, lines: list[str], rows: list[list[int]], count: int, **facts: Any
) -> dict[str, Any]:
    """A stage as the schema has it; what is not among the facts is null."""
    defaults = {"target": None, "of": None, "rewrite": None, "changed": True, "seconds": None}
    return {"kind": kind, "title": title, "count": count, "lines": lines, "rows": rows, **defaults, **facts}


def _numbers(rows: Iterable[int | None]) -> list[int]:
    return [row for row in rows if row is not None]


def _parts(rewrite: RecordedRewrite) -> list[str]:
    """What tells the programs of one rewrite apart: linearization gives two."""
    if rewrite.name == "linearize" and len(rewrite.given) == 2:
        return [", primal", ", tangent"]
    return [""] if len(rewrite.given) == 1 else [f", part {i + 1}" for i in range(len(rewrite.given))]
