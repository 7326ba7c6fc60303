"""The boundary of an outlined block: for each outside value, a parameter, or parameters to recompute it from.

XLA fuses cheap operations into their consumers, so that their results are never stored. It cannot fuse across the calls
that outlining creates, so a block recomputes cheap values, from the parameters of the fewest bytes that suffice. This
keeps the residuals of a layer small: two arrays for `gelu(x @ w + b)`, not five of the same size, one for a layer norm,
not three.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import REMATERIALIZABLE, Atom, Equation, Literal, Shape, Var
from xlamini.interpreters.outline.blocks import Family, wiring
from xlamini.interpreters.outline.cut import cheapest_cut
from xlamini.interpreters.outline.views import stored_shape

Given = tuple[Var, ...]
"""A value from outside a block: its variable in each member of the family."""

Operand = Given | Literal

_MOST_ARRAYS = 2**20
"""So many arrays cost less than one byte."""


class Origin(NamedTuple):
    """The origin of a variable: its equation, that equation's symbol, and its block, if any."""

    eqn: Equation
    symbol: int
    block: Any


class Boundary:
    """The boundary of a family: `params` are its parameters; all other outside values are recomputed from these."""

    family: Family

    def __init__(self, family: Family, origins: Mapping[Var, Origin]):
        self.family, self._origins = family, origins
        self.template: Sequence[Equation] = family.members[0]
        self.wiring: tuple[tuple[tuple[int, int] | None, ...], ...] = wiring(self.template)
        self.operands: list[list[Operand | None]] = _operands(family, self.wiring)
        wanted = dict.fromkeys(x for row in self.operands for x in row if type(x) is tuple)
        self.params: dict[Any, Any | None] = dict.fromkeys(cheapest_cut(self._sources(wanted), wanted, self._cost))

    def _sources(self, wanted: Iterable[Given]) -> dict[Given, list[Given]]:
        """What each value can be recomputed from, if it is cheap: those wanted, and what their blocks made for them.

        So a sum that runs through all layers is not recomputed from its start in each layer.
        """
        sources: dict[Given, list[Given]] = {}
        waiting = list(wanted)
        while waiting:
            here = waiting.pop()
            if here not in sources and self.computed_by(here) is not None:
                sources[here] = [a for a in self.operands_of(here) if type(a) is tuple]
                waiting += [a for a in sources[here] if self._block(a) == self._block(here)]
        return sources

    def _cost(self, x: Given) -> int:
        """The bytes that are held for it, which are none for what the program is given.

        Of several cuts with equally many bytes that of fewer arrays is best, and of those that XLA stores in any case.
        """
        if x[0] not in self._origins:
            return 0
        return _MOST_ARRAYS * x[0].aval.nbytes + (2 if self._is_stored(x[0]) else 3)

    def _is_stored(self, x: Atom) -> bool:
        """Whether XLA stores a value as it is: it is not cheap, or a view of such a value.

        It copies a result with dimensions of size 1 where a function returns it.
        """
        eqn = self._producer(x)
        if eqn is None or 1 in x.aval.shape:
            return False
        return self._is_stored(eqn.invars[0]) if eqn.primitive.memory.view else not _is_cheap(eqn)

    def stored_shape(self, x: Var) -> Shape:
        """The shape in which XLA stores a value."""
        return stored_shape(x, self._producer)

    def _producer(self, x: Atom) -> Equation | None:
        origin = self._origins.get(x) if type(x) is Var else None
        return None if origin is None else origin.eqn

    def _block(self, x: Given) -> Any:
        origin = self._origins.get(x[0])
        return None if origin is None else origin.block

    def computed_by(self, x: Given) -> Equation | None:
        """The first member's equation that defines `x`, if it is cheap and has an equal in all members; else None."""
        first = self._origins.get(x[0])
        if first is None or not _is_cheap(first.eqn):
            return None
        same = all((o := self._origins.get(v)) is not None and o.symbol == first.symbol for v in x)
        return first.eqn if same and x in self.results_with(x) else None

    def results_with(self, x: Given) -> list[Given]:
        """The results of the equations that define `x`, which is one of them unless members differ in which it is."""
        return list(zip(*(self._origins[v].eqn.outvars for v in x), strict=True))

    def operands_of(self, x: Given) -> list[Operand]:
        """The operands of the equations that define `x`."""
        return [_operand(atoms) for atoms in zip(*(self._origins[v].eqn.invars for v in x), strict=True)]


def _is_cheap(eqn: Equation) -> bool:
    """Whether a block computes it again rather than take it from outside."""
    return bool(eqn.primitive.traits & REMATERIALIZABLE) or eqn.primitive.memory.permutes


def _operands(family: Family, local: Sequence[Sequence[tuple[int, int] | None]]) -> list[list[Operand | None]]:
    """The outside operands and literals of each equation; None for operands defined in the block."""
    rows: list[list[Operand | None]] = []
    for i, places in enumerate(local):
        columns = list(zip(*(member[i].invars for member in family.members), strict=True))
        rows.append([_operand(c) if place is None else None for place, c in zip(places, columns, strict=True)])
    return rows


def _operand(atoms: Sequence[Any]) -> Operand:
    """One operand, as the variables of all members; literals are equal in all members."""
    return atoms[0] if type(atoms[0]) is Literal else tuple(atoms)
