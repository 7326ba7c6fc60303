"""Blocks: sequences of equations that are equal up to renaming of variables.

A periodic run is cut where the fewest bytes are live that the next period reads: between two layers, not within one.
Blocks with equal operations and equal wiring form a family.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Atom, Equation, Jaxpr, Var
from xlamini.core.caching.structure import executable_params
from xlamini.interpreters.outline.repeats import Run, find_runs

MIN_EQUATIONS = 20
MIN_COUNT = 3


class Family(NamedTuple):
    """A family: equal blocks of `length` equations at `starts`; `members[j][i]` is equation i of block j."""

    starts: Sequence[int]
    length: int
    members: Sequence[Sequence[Equation]]

    @property
    def rows(self) -> list[int]:
        """How many blocks follow one another, for each row of them."""
        places = [start - i * self.length for i, start in enumerate(sorted(self.starts))]
        return list(Counter(places).values())


def find_families(jaxpr: Jaxpr, symbols: Sequence[int]) -> list[Family]:
    """The families of at least MIN_COUNT blocks; no two blocks overlap."""
    runs = find_runs(symbols, MIN_EQUATIONS, MIN_COUNT)
    live_ranges = _live_ranges(jaxpr) if runs else None
    groups: dict[Any, list[int]] = defaultdict(list)
    for run in runs:
        for start in _starts(run, _live_bytes(live_ranges, run.period)):
            block = jaxpr.eqns[start : start + run.period]
            groups[tuple(symbols[start : start + run.period]), wiring(block)].append(start)
    return [
        Family(starts, len(names), [jaxpr.eqns[s : s + len(names)] for s in starts])
        for (names, _), starts in groups.items()
        if len(starts) >= MIN_COUNT
    ]


def symbols_of(eqns: Sequence[Equation]) -> list[int]:
    """A number for each equation; equations with equal primitive, params, literals and types have equal numbers."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(_symbol(eqn, i), len(numbers)) for i, eqn in enumerate(eqns)]


def _symbol(eqn: Equation, unique: int) -> Any:
    if eqn.effects:
        return unique  # an effect must not be moved or merged
    numbers = tuple([None if type(a) is Var else _number(a) for a in eqn.invars])
    if eqn.kind is not None and eqn.kind.shared:
        return eqn.kind, numbers
    params = tuple(eqn.params.items()) if eqn.primitive.is_pure else executable_params(eqn.params)
    return eqn.primitive, params, numbers, tuple([a.aval for a in (*eqn.invars, *eqn.outvars)])


def _number(literal: Any) -> tuple[Any, ...]:
    # Compared by text, because nan is not equal to itself, and -0.0 equals 0.0.
    return repr(literal.val), literal.aval


def wiring(block: Sequence[Equation]) -> tuple[tuple[tuple[int, int] | None, ...], ...]:
    """For each operand of each equation its producer in the block, (equation, output); None if it is from outside."""
    places: dict[Atom, tuple[int, int]] = {}
    rows = []
    for i, eqn in enumerate(block):
        rows.append(tuple([places.get(a) if type(a) is Var else None for a in eqn.invars]))
        for o, var in enumerate(eqn.outvars):
            places[var] = i, o
    return tuple(rows)


def _live_ranges(jaxpr: Jaxpr) -> np.ndarray:
    """The live range of each variable: rows of (defining equation, last equation that reads it, bytes)."""
    made: dict[Var, list[int]] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for a in eqn.invars:
            if type(a) is Var and a in made:
                made[a][1] = i
        for v in eqn.outvars:
            made[v] = [i, i, v.aval.nbytes]
    return np.array(list(made.values()))


def _live_bytes(live_ranges: Any, period: int) -> np.ndarray:
    """The live bytes before each equation, of variables whose live range is at most one period.

    Longer live ranges, as of residuals for the backward pass, cross every cut, so they are left out.
    """
    made, last, size = live_ranges[live_ranges[:, 1] - live_ranges[:, 0] <= period].T
    changes = np.zeros(int(live_ranges[:, 1].max()) + 2, np.int64)
    np.add.at(changes, made + 1, size)
    np.add.at(changes, last + 1, -size)
    return np.cumsum(changes)


def _starts(run: Run, live_bytes: np.ndarray) -> range:
    """The starts of the blocks of a run: cut where the live bytes are fewest."""
    middle = run.start + (run.stop - run.start) // (2 * run.period) * run.period
    window = live_bytes[middle : min(middle + run.period, run.stop)]
    best = middle + int(np.argmin(window))
    first = run.start + (best - run.start) % run.period
    return range(first, run.stop - run.period + 1, run.period)
