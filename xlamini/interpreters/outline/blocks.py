"""Blocks: stretches of equations that compute the same thing with different variables.

A repeating stretch is cut where the fewest bytes are in flight that the next few equations read: between two layers,
not within one. Blocks of the same operations, wired alike, are a family.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.jaxpr import Atom, Equation, Jaxpr, Var
from xlamini.core.structure import executable_params
from xlamini.interpreters.outline.repeats import Run, find_runs

MIN_EQUATIONS = 20
MIN_COUNT = 3


class Family(NamedTuple):
    """Blocks of `length` equations that begin at `starts`; `members[j][i]` is equation i of block j."""

    starts: Sequence[int]
    length: int
    members: Sequence[Sequence[Equation]]


def find_families(jaxpr: Jaxpr, symbols: Sequence[int]) -> list[Family]:
    """The families of at least MIN_COUNT blocks, none of which overlap."""
    runs = find_runs(symbols, MIN_EQUATIONS, MIN_COUNT)
    lives = _lives(jaxpr) if runs else None
    alike: dict[Any, list[int]] = defaultdict(list)
    for run in runs:
        for start in _starts(run, _in_flight(lives, run.period)):
            block = jaxpr.eqns[start : start + run.period]
            alike[tuple(symbols[start : start + run.period]), wiring(block)].append(start)
    return [
        Family(starts, len(names), [jaxpr.eqns[s : s + len(names)] for s in starts])
        for (names, _), starts in alike.items()
        if len(starts) >= MIN_COUNT
    ]


def symbols_of(eqns: Sequence[Equation]) -> list[int]:
    """A number for each equation, equal where primitive, params, literals and types are."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(_symbol(eqn, i), len(numbers)) for i, eqn in enumerate(eqns)]


def _symbol(eqn: Equation, unique: int) -> Any:
    if eqn.effects:
        return unique  # what is seen from outside stays as and where it is written
    numbers = tuple([None if type(a) is Var else _number(a) for a in eqn.invars])
    if eqn.kind is not None and eqn.kind.shared:
        return eqn.kind, numbers
    params = executable_params(eqn.params) if eqn.primitive.higher_order else tuple(eqn.params.items())
    return eqn.primitive, params, numbers, tuple([a.aval for a in (*eqn.invars, *eqn.outvars)])


def _number(literal: Any) -> tuple[Any, ...]:
    # By its text: nan is not equal to itself, and -0.0 equals 0.0.
    return repr(literal.val), literal.aval


def wiring(block: Sequence[Equation]) -> tuple[tuple[tuple[int, int] | None, ...], ...]:
    """For each operand of each equation which output of which equation of the block it is; None for all others."""
    places: dict[Atom, tuple[int, int]] = {}
    rows = []
    for i, eqn in enumerate(block):
        rows.append(tuple([places.get(a) if type(a) is Var else None for a in eqn.invars]))
        for o, var in enumerate(eqn.outvars):
            places[var] = i, o
    return tuple(rows)


def _lives(jaxpr: Jaxpr) -> np.ndarray:
    """Rows of (equation that makes it, last equation that reads it, bytes), one for each variable that is read."""
    made: dict[Var, list[int]] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for a in eqn.invars:
            if type(a) is Var and a in made:
                made[a][1] = i
        for v in eqn.outvars:
            made[v] = [i, i, v.aval.nbytes]
    return np.array(list(made.values()))


def _in_flight(lives: Any, period: int) -> np.ndarray:
    """Before each equation, the bytes of variables made before and read after it, all within one period.

    What lives longer, as residuals do that wait for the backward pass, crosses every cut.
    """
    made, last, size = lives[lives[:, 1] - lives[:, 0] <= period].T
    changes = np.zeros(int(lives[:, 1].max()) + 2, np.int64)
    np.add.at(changes, made + 1, size)
    np.add.at(changes, last + 1, -size)
    return np.cumsum(changes)


def _starts(run: Run, in_flight: np.ndarray) -> range:
    """Where the blocks of a run begin."""
    middle = run.start + (run.stop - run.start) // (2 * run.period) * run.period
    window = in_flight[middle : min(middle + run.period, run.stop)]
    best = middle + int(np.argmin(window))
    first = run.start + (best - run.start) % run.period
    return range(first, run.stop - run.period + 1, run.period)
