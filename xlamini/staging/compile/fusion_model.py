"""Which values of a program XLA stores: those that it does not compute inside of the loops that read them.

An elementwise result that only loops read is never stored, unless it is expensive and has several readers; a reshape is
its operand's memory.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from xlamini.core import ELEMENTWISE, REMATERIALIZABLE, Atom, Equation, Jaxpr, Primitive, Var

LOOPS = ELEMENTWISE | REMATERIALIZABLE
"""The traits of what is computed inside of the loop that reads it."""


class Storage:
    """Where the values of a jaxpr are: each has roots, the stored variables that computing it reads."""

    jaxpr: Jaxpr
    readers: dict[Var, list[Equation]]

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr, self.readers = jaxpr, _readers(jaxpr)
        self.makers: dict[Var, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self.whole: set[Var] = self._needed_whole()
        self.roots: dict[Var, tuple[Var, ...]] = {v: (v,) for v in (*jaxpr.invars, *jaxpr.constvars)}
        for eqn in jaxpr.eqns:
            for v in eqn.outvars:
                self.roots[v] = (v,) if self._is_stored(eqn, v) else self.roots_of(eqn.invars)

    def roots_of(self, atoms: Iterable[Atom]) -> tuple[Var, ...]:
        """The stored variables that these are computed from, each once."""
        return tuple(dict.fromkeys(root for a in atoms if type(a) is Var for root in self.roots[a]))

    def is_stored(self, var: Var) -> bool:
        """Whether it has memory of its own."""
        return self.roots[var] == (var,)

    def _needed_whole(self) -> set[Var]:
        """The variables that are read as arrays in memory: the results, and operands of what XLA cannot fuse."""
        whole = {a for a in self.jaxpr.outvars if type(a) is Var}
        permuted: set[Var] = set()  # what products read, which may be a permutation of the array
        for eqn in reversed(self.jaxpr.eqns):
            operands, memory = [a for a in eqn.invars if type(a) is Var], eqn.primitive.memory
            read_permuted = not permuted.isdisjoint(eqn.outvars)
            if memory.product or (read_permuted and (memory.permutes or memory.view)):
                permuted.update(operands)
            elif read_permuted:
                whole.update(eqn.outvars)
            read_whole = not (_is_fused(eqn.primitive) or memory.reads or memory.view or memory.product)
            if read_whole or (memory.view and eqn.outvars[0] in whole):
                whole.update(operands)
        return whole

    def _is_stored(self, eqn: Equation, var: Var) -> bool:
        memory = eqn.primitive.memory
        if memory.view:
            return False
        readers = [reader.primitive.memory for reader in self.readers[var]]
        if memory.product and len(readers) == 1 and readers[0].permutes and var not in self.whole:
            return False
        if not _is_fused(eqn.primitive) or var in self.whole:
            return True
        if memory.permutes and all(reader.product for reader in readers):
            return False
        return not eqn.primitive.traits & REMATERIALIZABLE and len(readers) > 1

    def aligned(self, var: Var) -> set[Var]:
        """The roots of which an element is read only for the result's element at its position."""
        near: set[Var] = set()
        far: set[Var] = set()
        self._visit(self.makers[var], near, far)
        return near - far

    def _visit(self, eqn: Equation, near: set[Var], far: set[Var]) -> None:
        """Add the roots that an equation reads at its own positions to `near`, the others to `far`."""
        memory, near_all = eqn.primitive.memory, eqn.primitive.traits & ELEMENTWISE or eqn.primitive.memory.view
        for v in dict.fromkeys(a for a in eqn.invars if type(a) is Var):
            if not near_all and not (memory.updates and v is eqn.invars[0]):
                far.update(self.roots[v])
            elif self.is_stored(v) or v not in self.makers:
                near.update(self.roots[v])
            else:
                self._visit(self.makers[v], near, far)


def _is_fused(primitive: Primitive) -> bool:
    """Whether it may be computed inside of the loop that reads it."""
    return bool(primitive.traits & LOOPS) or primitive.memory.moves


def _readers(jaxpr: Jaxpr) -> dict[Var, list[Equation]]:
    """The equations that read a variable, views replaced by their readers."""
    found: dict[Var, list[Equation]] = defaultdict(list)
    for eqn in reversed(jaxpr.eqns):
        through = found[eqn.outvars[0]] if eqn.primitive.memory.view else [eqn]
        for v in dict.fromkeys(a for a in eqn.invars if type(a) is Var):
            found[v].extend(through)
    return found
