"""The table of equations: one row for each equation of each program of a function's life.

A row's parent is the equation of an earlier program that it was derived from, so a row of the program that is lowered
leads back to the user's line through every rewrite.
"""
from __future__ import annotations

import dataclasses
import inspect
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from xlamini.core import Cost, Equation, Jaxpr, Literal, Primitive, Var
from xlamini.core.caching.memo import memoised
from xlamini.core.errors.frames import definition, own_files
from xlamini.core.program.call_graph import call_graph, first_paths
from xlamini.core.program.equation_kind import equation_cost
from xlamini.core.program.form_call import original
from xlamini.core.program.jaxpr import Provenance, subjaxprs
from xlamini.primitives.base.elementwise import Elementwise
from xlamini.staging.call.higher_order import HigherOrder
from xlamini.staging.compile.cost_report import RunContext, direction_of

NOTHING = Cost(0, 0)


@dataclasses.dataclass(slots=True)
class EquationRow:
    """One equation; the fields are those of the schema."""

    stage: int
    label: str
    primitive: str
    text: str
    depth: int
    source: int | None
    line: int | None
    function: str | None
    variable: str | None
    scope: str
    direction: str
    parent: int | None
    rewrite: str | None
    rule: Rule | None
    runs: int
    flops: int
    bytes: int
    held: int
    operands: list[int]


class Inner(NamedTuple):
    """A jaxpr inside of a program: how deep it is, and on whose behalf it runs."""

    jaxpr: Jaxpr
    depth: int
    place: RunContext


class Files:
    """The source files by number, in the order in which they are met."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, file: str) -> int:
        return self.numbers.setdefault(file, len(self.numbers))


class Table:
    """All rows, and where each equation is among them: in the newest program that has it."""

    def __init__(self) -> None:
        self.rows: list[EquationRow] = []
        self.files: Files = Files()
        self.row_of: dict[Equation, int] = {}
        self._programs: list[Jaxpr] = []  # whose equations are keys above; without them another could have their id
        self._made_by: dict[tuple[int, str], list[int]] = defaultdict(list)
        self._variables: dict[Any, str | None] = {}
        self.failure: Exception | None = None

    def add(self, stage: int, program: Jaxpr) -> dict[Equation, int]:
        """Add the equations of a program, those of inner jaxprs behind the equation that holds them; their rows."""
        self._programs.append(program)
        walk = _Walk(self, stage, program)
        walk.visit(Inner(program, 0, RunContext()))
        self._made_by.update(walk.made_by)
        return walk.rows

    def columns(self) -> dict[str, list[Any]]:
        """The rows as the schema has them: a list for each field."""
        names = [field.name for field in dataclasses.fields(EquationRow)]
        columns = {name: [getattr(row, name) for row in self.rows] for name in names}
        columns["rule"] = [rule and rule._asdict() for rule in columns["rule"]]
        return columns

    def cost_of(self, eqn: Equation) -> Cost:
        """What its rule says that an equation costs; nothing if the rule fails, and the first failure is kept."""
        try:
            return equation_cost(eqn)
        except Exception as error:  # a report has the program all the same
            self.failure = self.failure or error
            return NOTHING

    def variable_of(self, eqn: Equation) -> str | None:
        """The user's name for an equation's value; reading it from the bytecode is slow, so it is remembered."""
        source = eqn.provenance.source
        if source is not None and source not in self._variables:
            self._variables[source] = source.target
        return self._variables.get(source)

    def parent_of(self, eqn: Equation, position: int) -> int | None:
        """The row that an equation was copied or derived from.

        Of rows of one origin it is the one in `position`; a program that was copied several times has them in turn.
        """
        if eqn in self.row_of:
            return self.row_of[eqn]
        provenance = eqn.provenance
        copies = self._made_by.get((id(provenance), eqn.primitive.name), ())
        if copies:
            return copies[position % len(copies)]
        here = provenance
        while here.origin is not None:
            if here.origin in self.row_of:
                return self.row_of[here.origin]
            here = here.origin.provenance
        return None


class _Walk:
    """One pass over a program and the jaxprs in it."""

    def __init__(self, table: Table, stage: int, program: Jaxpr):
        self.table, self.stage, self.rows = table, stage, dict[Equation, int]()
        graph = call_graph(program)
        self.paths, self.runs = first_paths(graph), _runs(program)
        self.made_by: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.makers: dict[Var, int] = {}
        self.visited = {program}

    def visit(self, inner: Inner) -> None:
        for eqn in inner.jaxpr.eqns:
            self._add(eqn, inner)
            for found in _inside(eqn, inner):
                if found.jaxpr not in self.visited:
                    self.visited.add(found.jaxpr)
                    self.visit(found)

    def _add(self, eqn: Equation, inner: Inner) -> None:
        table, key, number = self.table, (id(eqn.provenance), eqn.primitive.name), len(self.table.rows)
        parent = table.parent_of(eqn, len(self.made_by[key]))
        table.rows.append(self._row(eqn, inner, parent))
        table.row_of[eqn] = number
        self.made_by[key].append(number)
        self.makers.update(dict.fromkeys(eqn.outvars, number))
        self.rows[eqn] = number

    def _row(self, eqn: Equation, inner: Inner, parent: int | None) -> EquationRow:
        provenance, source, runs = eqn.provenance, eqn.provenance.source, self.runs[inner.jaxpr]
        cost = NOTHING if called(eqn) else self.table.cost_of(eqn)
        name = original(eqn).primitive.name
        return EquationRow(
            stage=self.stage,
            label=f"{name}#e{self.paths[inner.jaxpr]}{eqn.id}",
            primitive=name,
            text="",
            depth=inner.depth,
            source=None if source is None else self.table.files.number(source.file),
            line=source and source.line,
            function=source and source.function,
            variable=self.table.variable_of(eqn),
            scope=provenance.name_stack,
            direction=direction_of(eqn, inner.place),
            parent=parent,
            rewrite=provenance.rewrite,
            rule=rule_of(provenance),
            runs=runs,
            flops=runs * cost.flops,
            bytes=runs * cost.bytes,
            held=0,
            operands=[self.makers[a] for a in eqn.invars if type(a) is not Literal and a in self.makers],
        )


def called(eqn: Equation) -> list[tuple[Jaxpr, int]]:
    """The jaxprs that one run of an equation runs, and how often; none where its cost counts them."""
    primitive = eqn.primitive
    return primitive.runs(eqn.params) if isinstance(primitive, HigherOrder) else []


def _inside(eqn: Equation, outer: Inner) -> Iterator[Inner]:
    """The jaxprs of an equation, with those that a call does not run, such as the branch that costs less."""
    primitive = eqn.primitive
    if not primitive.higher_order:
        return
    recomputes = outer.place.recomputes or (isinstance(primitive, HigherOrder) and primitive.recomputes(eqn.params))
    place = RunContext(1, recomputes, direction_of(eqn, outer.place) == "backward")
    for jaxpr in subjaxprs(eqn):
        yield Inner(jaxpr, outer.depth + 1, place)


def _runs(program: Jaxpr) -> Counter[Jaxpr]:
    """How often a call of the program runs each jaxpr in it."""
    runs = Counter({program: 1})
    for jaxpr in _callers_first(program):
        for eqn in jaxpr.eqns:
            for inner, trips in called(eqn):
                runs[inner] += runs[jaxpr] * trips
    return runs


def _callers_first(program: Jaxpr) -> list[Jaxpr]:
    """The jaxprs that are run, each behind all that call it."""
    ended: dict[Jaxpr, None] = {}
    waiting = [(program, False)]
    while waiting:
        jaxpr, is_ended = waiting.pop()
        if is_ended:
            ended[jaxpr] = None
        elif jaxpr not in ended:
            waiting.append((jaxpr, True))
            waiting.extend((inner, False) for eqn in jaxpr.eqns for inner, _ in called(eqn))
    return list(ended)[::-1]


# --- the rule that wrote an equation: the method of a primitive that a rewrite called, with its place in the source


RULES: dict[str, tuple[str, ...]] = {
    "jvp": ("jvp",),
    "linearize": ("linearize", "jvp"),
    "transpose": ("transpose",),
    "batch": ("batch",),
    "expand": ("expand",),
}
"""By the name of a rewrite, the rules that it calls; of several the first that the primitive has."""


class Rule(NamedTuple):
    """A rule, as `tanh.jvp`, and where it is written."""

    name: str
    file: str
    line: int


def rule_of(provenance: Provenance) -> Rule | None:
    """The rule that wrote an equation of this provenance; None for one that was traced, or copied by a rewrite."""
    if provenance.origin is None:
        return None
    return _written(provenance.origin.primitive, provenance.rewrite or "")


@memoised("inspect: rules of rewrites", 4096)
def _written(primitive: Primitive, rewrite: str) -> Rule | None:
    for name in RULES.get(rewrite, ()):
        function = _function(primitive, name)
        if function is not None:
            file, line = definition(inspect.unwrap(function))
            return Rule(f"{primitive.name}.{name}", _shown(file), line)
    return None


def _shown(file: str) -> str:
    """The path of a file, from the package on if it is the library's."""
    _, package, inside = file.rpartition(f"{os.sep}xlamini{os.sep}")
    return f"xlamini/{inside}" if package and own_files[file] else file


def _function(primitive: Primitive, name: str) -> Callable[..., Any] | None:
    """The function behind a rule: the formula of an elementwise operation's derivative, else the method."""
    if name == "jvp" and isinstance(primitive, Elementwise) and primitive.partials:
        return primitive.partials[0]
    return primitive.written(name)
