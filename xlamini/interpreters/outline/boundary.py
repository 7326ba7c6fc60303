"""The boundary of an outlined block: for each outside value, a parameter, or parameters to recompute it from.

XLA fuses cheap operations into their consumers, so that their results are never stored. It cannot fuse across the calls
that outlining creates, so a block recomputes cheap values if that makes its inputs smaller. This keeps the residuals of
a layer small: two arrays for `gelu(x @ w + b)`, not five of the same size.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import REMATERIALIZABLE, Equation, Literal, Var
from xlamini.interpreters.outline.blocks import Family, wiring

Given = tuple[Var, ...]
"""A value from outside a block: its variable in each member of the family."""

Operand = Given | Literal


class Origin(NamedTuple):
    """The origin of a variable: its equation, that equation's symbol, and its block, if any."""

    eqn: Equation
    symbol: int
    block: Any


class Boundary:
    """The boundary of a family: `params` are its parameters; all other outside values are recomputed from these."""

    def __init__(self, family: Family, origins: Mapping[Var, Origin]):
        self._origins = origins
        self.template = family.members[0]
        self.wiring = wiring(self.template)
        self.operands = _operands(family, self.wiring)
        wanted = dict.fromkeys(x for row in self.operands for x in row if type(x) is tuple)
        self.params = dict.fromkeys(x for x in wanted if self.computed_by(x) is None)
        for x in sorted(wanted, key=_bytes, reverse=True):
            self._decide(x)

    def _decide(self, x: Given) -> None:
        """Recompute `x` if the additional parameters for that are not larger than `x`."""
        if x not in self.params:
            roots = [r for r in self._roots(x) if r not in self.params]
            new = sum(_bytes(r) for r in roots if r[0] in self._origins)
            self.params.update(dict.fromkeys(roots if new <= _bytes(x) else [x]))

    def _roots(self, x: Given) -> list[Given]:
        """The values to recompute `x` from: those that are not cheap, or are from another block than `x`.

        So a sum that runs through all layers is not recomputed from its start in each layer.
        """
        found: dict[Given, None] = {}
        waiting, seen, home = [x], {x}, self._block(x)
        while waiting:
            here = waiting.pop()
            eqn = None if here in self.params or self._block(here) != home else self.computed_by(here)
            if eqn is None:
                found[here] = None
                continue
            new = [a for a in self.operands_of(here) if type(a) is tuple and a not in seen]
            seen.update(new)
            waiting += new
        return list(found)

    def _block(self, x: Given) -> Any:
        origin = self._origins.get(x[0])
        return None if origin is None else origin.block

    def computed_by(self, x: Given) -> Equation | None:
        """The first member's equation that defines `x`, if it is cheap and has an equal in all members; else None."""
        first = self._origins.get(x[0])
        if first is None or not first.eqn.primitive.traits & REMATERIALIZABLE or len(first.eqn.outvars) > 1:
            return None
        same = all((o := self._origins.get(v)) is not None and o.symbol == first.symbol for v in x)
        return first.eqn if same else None

    def operands_of(self, x: Given) -> list[Operand]:
        """The operands of the equations that define `x`."""
        return [_operand(atoms) for atoms in zip(*(self._origins[v].eqn.invars for v in x), strict=True)]


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


def _bytes(x: Given) -> int:
    return x[0].aval.nbytes
