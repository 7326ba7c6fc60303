"""The segments of an outlined program: several calls of a block in a row, or what lies between such rows.

    chunk(jaxpr, lengths, call)  ->  jaxpr whose equations are calls, one for each segment

A program that runs segment by segment needs an executable for each kind of block, however deep it is.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from typing import Any

from xlamini.core import Equation, Jaxpr, Var

Lengths = Mapping[Jaxpr, int]
"""For the function of each block, how many calls in a row are a segment, at least."""


Call = Callable[[Jaxpr, Sequence[Var], Sequence[Var], Equation], Equation]
"""Makes the call of a function, with its operands and results; the equation is the first in the function."""


def chunk(jaxpr: Jaxpr, lengths: Lengths, call: Call) -> Jaxpr:
    """The program as calls of its segments; its outputs must be results of its equations, and different ones.

    Segments that compute the same have one jaxpr.
    """
    pieces = [_Piece(eqns, lengths) for eqns in _pieces(jaxpr.eqns, lengths)]
    read = _results_read(pieces, {*jaxpr.outvars, *(v for piece in pieces for v in piece.operands)})
    jaxprs: dict[Any, Jaxpr] = {}
    eqns = []
    for piece in pieces:
        results = [piece.made[j] for j in read[piece.structure]]
        if piece.structure not in jaxprs:
            jaxprs[piece.structure] = Jaxpr([], piece.operands, results, piece.eqns, jaxpr.name)
        eqns.append(call(jaxprs[piece.structure], piece.operands, results, piece.eqns[0]))
    return jaxpr.replace(eqns=eqns)


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


def _results_read(pieces: Sequence[_Piece], needed: Set[Any]) -> dict[Any, list[int]]:
    """Which results each structure returns: those that are read of any piece that has it."""
    read: dict[Any, set[int]] = defaultdict(set)
    for piece in pieces:
        read[piece.structure].update(j for j, v in enumerate(piece.made) if v in needed)
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
