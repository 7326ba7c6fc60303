"""The stages that are jaxprs: the user's function as it was traced, each rewrite of it, and the program that is lowered."""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.core import Jaxpr
from xlamini.core.printing import lines_with_equations
from xlamini.inspection.equations import Table
from xlamini.inspection.recording import Rewrite

WIDTH = 100
NAMES = {"dce": "unused equations dropped", "batch": "vmap", "expand": "primitives expanded"}
"""Titles of rewrites whose name is not a word of users."""


class Stage(NamedTuple):
    """One stage as the schema has it."""

    kind: str
    title: str
    lines: list[str]
    rows: list[list[int]]
    count: int
    target: int | None = None
    of: int | None = None
    rewrite: str | None = None
    changed: bool = True
    seconds: float | None = None


class Stages:
    """The stages so far, with the table of their equations."""

    def __init__(self) -> None:
        self.table, self.stages = Table(), list[Stage]()
        self._numbers: dict[Jaxpr, int] = {}

    def add(self, program: Jaxpr, title: str, **facts: Any) -> int:
        """Add a program as a stage, unless it is one already; the number of its stage."""
        known = self._numbers.get(program)
        if known is not None:
            return known
        number = self._numbers[program] = len(self.stages)
        rows = self.table.add(number, program)
        lines, marks = [], []
        for text, equations in lines_with_equations(program, WIDTH):
            lines.append(text)
            marks.append([rows[eqn] for eqn in equations])
            for row in marks[-1]:
                self.table.rows[row].text = text.strip()
        self.stages.append(Stage("jaxpr", title, lines, marks, len(rows), **facts))
        return number

    def add_rewrite(self, rewrite: Rewrite) -> None:
        """Add the programs that a rewrite gave, and the one that it took if it is not there."""
        taken = self.add(rewrite.taken, f"{rewrite.taken.name}: traced")
        for part, program in zip(_parts(rewrite), rewrite.given, strict=True):
            title = f"{rewrite.taken.name}: {NAMES.get(rewrite.name, rewrite.name)}{part}"
            self.add(program, title, of=taken, rewrite=rewrite.name, seconds=rewrite.seconds)


def _parts(rewrite: Rewrite) -> list[str]:
    """What tells the programs of one rewrite apart: linearization gives two."""
    if rewrite.name == "linearize" and len(rewrite.given) == 2:
        return [", primal", ", tangent"]
    return [""] if len(rewrite.given) == 1 else [f", part {i + 1}" for i in range(len(rewrite.given))]
