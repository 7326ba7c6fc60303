"""The segments of an outlined program: several calls of a block in a row, or what lies between such rows.

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
    """A part of a program: what it computes, and the numbers of its operands and of the values that are dead after it.

    Segments that compute the same have one jaxpr.
    """

    jaxpr: Jaxpr
    operands: list[int]
    dead: list[int]


class Chunks(NamedTuple):
    """A program as segments, which run in this order, and the numbers of its outputs."""

    in_order: list[Segment]
    outputs: list[int]


def cut(jaxpr: Jaxpr, lengths: Lengths) -> Chunks:
    """The segments of a program, whose outputs must be results of its equations, and different ones."""
    pieces = [_Piece(eqns, lengths) for eqns in _pieces(jaxpr.eqns, lengths)]
    last = {v: i for i, piece in enumerate(pieces) for v in piece.operands}
    last |= {v: len(pieces) for v in jaxpr.outvars if type(v) is Var}
    read = _results_read(pieces, last)
    numbers = {v: i for i, v in enumerate(jaxpr.invars)}
    jaxprs: dict[Any, Jaxpr] = {}
    segments = []
    for i, piece in enumerate(pieces):
        results = [piece.made[j] for j in read[piece.structure]]
        if piece.structure not in jaxprs:
            jaxprs[piece.structure] = Jaxpr([], piece.operands, results, piece.eqns, jaxpr.name)
        numbers |= {v: len(numbers) + j for j, v in enumerate(results)}
        dead = [numbers[v] for v in (*piece.operands, *results) if last.get(v, i) == i]
        segments.append(Segment(jaxprs[piece.structure], [numbers[v] for v in piece.operands], dead))
    return Chunks(segments, [numbers[v] for v in jaxpr.outvars if type(v) is Var])


class _Piece:
    """The equations of a segment, with the variables that they take and make."""

    def __init__(self, eqns: list[Equation], lengths: Lengths):
        self.eqns = eqns
        self.made = [v for eqn in eqns for v in eqn.outvars]
        within = {*self.made}
        self.operands = list(dict.fromkeys(a for e in eqns for a in e.invars if type(a) is Var and a not in within))
        numbers: dict[Any, int] = {v: i for i, v in enumerate([*self.operands, *self.made])}
        calls = [(_block(eqn, lengths) or eqn, *map(numbers.get, eqn.invars)) for eqn in eqns]
        self.structure = len(self.operands), *calls
        """What pieces that call the same blocks with the same values have in common; other equations are unique."""


def _results_read(pieces: Sequence[_Piece], last: Mapping[Var, int]) -> dict[Any, list[int]]:
    """Which results each structure returns: those that are read of any piece that has it."""
    read: dict[Any, set[int]] = defaultdict(set)
    for piece in pieces:
        read[piece.structure].update(j for j, v in enumerate(piece.made) if v in last)
    return {structure: sorted(results) for structure, results in read.items()}


def _block(eqn: Equation, lengths: Lengths) -> Jaxpr | None:
    """The function of the block that an equation calls with variables; None if it calls none."""
    called = eqn.params.get("jaxpr")
    return called if called in lengths and all(type(a) is Var for a in eqn.invars) else None


def _pieces(eqns: Sequence[Equation], lengths: Lengths) -> Iterator[list[Equation]]:
    """The equations of each segment; a row of calls that is too short is between segments."""
    between: list[Equation] = []
    for block, group in groupby(eqns, lambda eqn: _block(eqn, lengths)):
        row = list(group)
        length = 0 if block is None else _divisor(len(row), lengths[block])
        if not 0 < length <= len(row):
            between += row
            continue
        if between:
            yield between
        end = len(row) // length * length
        yield from (row[i : i + length] for i in range(0, end, length))
        between = row[end:]
    if between:
        yield between


def _divisor(length: int, least: int) -> int:
    """A divisor of a row's length, from `least` to `2 * least - 1`; if there is none, `least`."""
    return next((n for n in range(least, 2 * least) if length % n == 0), least)
