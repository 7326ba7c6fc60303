"""The segments of an outlined program: some calls of a block in a row, or what lies between them.

A program that runs segment by segment needs an executable for each kind of block, however deep it is. Values have
numbers: the program's inputs come first, then the results of each segment.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr, Var

Lengths = Mapping[Jaxpr, int]
"""For the function of each block, how many calls in a row are a segment, at least."""


class Segment(NamedTuple):
    """A part of a program: what it computes, the numbers of its operands, and those of values that nothing reads later.

    Segments that compute the same have one jaxpr.
    """

    jaxpr: Jaxpr
    operands: list[int]
    freed: list[int]


class Segments(NamedTuple):
    """A program as segments, which run in this order, and the numbers of its outputs."""

    each: list[Segment]
    outputs: list[int]


def cut(jaxpr: Jaxpr, lengths: Lengths) -> Segments | None:
    """The segments of a program; None if an output is an input, a literal, or another output too.

    Such an output would be the caller's own array, or one array twice.
    """
    outputs = [v for v in jaxpr.outvars if type(v) is Var]
    if len({*outputs}) < len(jaxpr.outvars) or not {*outputs}.isdisjoint(jaxpr.invars):
        return None
    runs = [_Run(eqns, lengths) for eqns in _runs(jaxpr.eqns, lengths)]
    last = {v: i for i, run in enumerate(runs) for v in run.operands} | dict.fromkeys(outputs, len(runs))
    read: dict[Any, set[int]] = defaultdict(set)  # the results of a function are what is read of any of its runs
    for run in runs:
        read[run.structure].update(j for j, v in enumerate(run.made) if v in last)
    functions: dict[Any, Jaxpr] = {}
    numbers = {v: i for i, v in enumerate(jaxpr.invars)}
    each = []
    for i, run in enumerate(runs):
        results = [run.made[j] for j in sorted(read[run.structure])]
        function = functions.setdefault(run.structure, Jaxpr([], run.operands, results, run.eqns, jaxpr.name))
        numbers |= {v: len(numbers) + j for j, v in enumerate(results)}
        freed = [numbers[v] for v in (*run.operands, *results) if last.get(v, i) == i]
        each.append(Segment(function, [numbers[v] for v in run.operands], freed))
    return Segments(each, [numbers[v] for v in outputs])


class _Run:
    """The equations of a segment, with the variables that they take and make."""

    def __init__(self, eqns: list[Equation], lengths: Lengths):
        self.eqns = eqns
        self.made = [v for eqn in eqns for v in eqn.outvars]
        within = {*self.made}
        self.operands = list(dict.fromkeys(a for e in eqns for a in e.invars if type(a) is Var and a not in within))
        numbers: dict[Any, int] = {v: i for i, v in enumerate([*self.operands, *self.made])}
        calls = [(_block(eqn, lengths) or eqn, *map(numbers.get, eqn.invars)) for eqn in eqns]
        self.structure = len(self.operands), *calls
        """What runs that call the same blocks with the same values have in common; other equations are unique."""


def _block(eqn: Equation, lengths: Lengths) -> Jaxpr | None:
    """The function of the block that an equation calls with variables; None if it calls none."""
    called = eqn.params.get("jaxpr")
    return called if called in lengths and all(type(a) is Var for a in eqn.invars) else None


def _runs(eqns: Sequence[Equation], lengths: Lengths) -> Iterator[list[Equation]]:
    """The equations of each segment; a row of calls that is too short is between segments."""
    between: list[Equation] = []
    for block, group in groupby(eqns, lambda eqn: _block(eqn, lengths)):
        row = list(group)
        length = len(row) + 1 if block is None else _divisor(len(row), lengths[block])
        if between and length <= len(row):
            yield between
            between = []
        end = len(row) // length * length
        yield from (row[i : i + length] for i in range(0, end, length))
        between += row[end:]
    if between:
        yield between


def _divisor(length: int, least: int) -> int:
    """A divisor of a row's length, from `least` on and below its double; if there is none, `least`."""
    return next((n for n in range(least, 2 * least) if length % n == 0), least)
