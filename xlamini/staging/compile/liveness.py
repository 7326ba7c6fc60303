"""Which values of a program are in memory, and when: liveness over its equations, with a model of what XLA fuses.

An elementwise result that only loops read is computed inside of them and never stored, unless it is expensive and has
several readers; a reshape is its operand's memory; a result may take the memory of an operand that ends there. Results
of the program have their memory from the start, as XLA allocates them, and those of a loop's body end with it.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xlamini.core import (
    ELEMENTWISE,
    MOVES,
    PERMUTES,
    PRODUCT,
    READS,
    REMATERIALIZABLE,
    VIEW,
    Atom,
    Equation,
    Jaxpr,
    Var,
)
from xlamini.staging.call.higher_order import HigherOrder

FUSED = ELEMENTWISE | REMATERIALIZABLE | MOVES
"""What may be computed inside of the loop that reads it."""


class Held(NamedTuple):
    """A stored value: the variable, the equation that made it (None: an input), and the last that needs it."""

    var: Var
    maker: Equation | None
    last: Equation | None
    bytes: int


class Moment(NamedTuple):
    """The bytes in memory beside the program's inputs and results, at an equation, and what they are."""

    bytes: int
    path: tuple[Equation, ...]
    held: tuple[Held, ...]


NOTHING = Moment(0, (), ())


class Storage:
    """Where the values of a jaxpr are: each has roots, the stored variables that computing it reads."""

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr, self.readers = jaxpr, _readers(jaxpr)
        self.makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self.whole = self._needed_whole()
        self.roots: dict[Var, tuple[Var, ...]] = {v: (v,) for v in (*jaxpr.invars, *jaxpr.constvars)}
        for eqn in jaxpr.eqns:
            operands = self.roots_of(eqn.invars)
            for v in eqn.outvars:
                self.roots[v] = (v,) if self._is_stored(eqn, v) else operands

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
            operands, traits = [a for a in eqn.invars if type(a) is Var], eqn.primitive.traits
            read_permuted = not permuted.isdisjoint(eqn.outvars)
            if traits & PRODUCT or (read_permuted and traits & (PERMUTES | VIEW)):
                permuted.update(operands)
            elif read_permuted:
                whole.update(eqn.outvars)
            if (traits & VIEW and eqn.outvars[0] in whole) or not traits & (FUSED | READS | VIEW | PRODUCT):
                whole.update(operands)
        return whole

    def _is_stored(self, eqn: Equation, var: Var) -> bool:
        traits = eqn.primitive.traits
        if traits & VIEW:
            return False
        readers = [reader.primitive.traits for reader in self.readers[var]]
        if traits & PRODUCT and len(readers) == 1 and readers[0] & PERMUTES and var not in self.whole:
            return False
        if not traits & FUSED or var in self.whole:
            return True
        if traits & PERMUTES and all(reader & PRODUCT for reader in readers):
            return False
        return not traits & REMATERIALIZABLE and len(readers) > 1

    def aligned(self, var: Var) -> set[Var]:
        """The roots of which an element is read only for the result's element at its position."""
        near: set[Var] = set()
        far: set[Var] = set()
        self._visit(self.makers[var], near, far)
        return near - far

    def _visit(self, eqn: Equation, near: set[Var], far: set[Var]) -> None:
        """Add the roots that an equation reads at its own positions to `near`, the others to `far`."""
        for v in dict.fromkeys(a for a in eqn.invars if type(a) is Var):
            if not eqn.primitive.traits & ELEMENTWISE and not eqn.primitive.traits & VIEW:
                far.update(self.roots[v])
            elif self.is_stored(v) or v not in self.makers:
                near.update(self.roots[v])
            else:
                self._visit(self.makers[v], near, far)


def _readers(jaxpr: Jaxpr) -> dict[Var, list[Equation]]:
    """The equations that read a variable, views replaced by their readers."""
    found: dict[Var, list[Equation]] = defaultdict(list)
    for eqn in reversed(jaxpr.eqns):
        through = found[eqn.outvars[0]] if eqn.primitive.traits & VIEW else [eqn]
        for v in dict.fromkeys(a for a in eqn.invars if type(a) is Var):
            found[v].extend(through)
    return found


class Liveness:
    """One pass over a jaxpr: what its equations hold on a platform, and the moment at which that is most.

    The results of an inner jaxpr are counted with what it holds, those of the whole program are not.
    """

    def __init__(self, jaxpr: Jaxpr, platform: str, inner: bool = False):
        self.jaxpr, self.storage, self.platform = jaxpr, Storage(jaxpr), platform
        results = self.storage.roots_of(jaxpr.outvars)
        self.inner, self.elsewhere = inner, set() if inner else set(results)
        self.kept = set(results)
        self.last = self._last_readers()
        self.alive: dict[Var, int] = {}
        self.peak = NOTHING

    def run(self) -> Moment:
        """The moment at which most is held."""
        for eqn in self.jaxpr.eqns:
            made = [v for v in eqn.outvars if self.storage.is_stored(v)]
            if made or eqn.effects:
                self._store(eqn, made)
        return self.peak

    def _store(self, eqn: Equation, made: Sequence[Var]) -> None:
        ended = [v for v in self.storage.roots_of(eqn.invars) if self.last.get(v) is eqn and v not in self.kept]
        own = {v: v.aval.nbytes for v in made if v not in self.elsewhere}
        taken = _taken(own, self._replaced(eqn, own, ended))
        in_inputs = {v for v, place in taken.items() if place not in self.alive}  # which are counted outside
        self.alive |= own
        self._note(eqn, taken)
        for v in (*ended, *in_inputs, *(v for v in own if v not in self.last and v not in self.kept)):
            self.alive.pop(v, None)

    def _note(self, eqn: Equation, taken: dict[Var, Var]) -> None:
        inside = inner_peak(eqn, self.platform)
        avals = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        working = eqn.primitive.workspace(self.platform, *avals, **eqn.params)
        now = sum(n for v, n in self.alive.items() if v not in taken) + inside.bytes + working
        if now > self.peak.bytes:
            held = [Held(v, self.storage.makers.get(v), self.last.get(v), n) for v, n in self.alive.items()]
            self.peak = Moment(now, (eqn, *inside.path), (*held, *inside.held))

    def _replaced(self, eqn: Equation, own: dict[Var, int], ended: Sequence[Var]) -> list[Var]:
        """What ends here and may become a result: operands that a loop reads at its own positions, and carries."""
        if eqn.primitive.higher_order:
            return [v for v in ended if v in self.alive]
        near: set[Var] = set().union(*(self.storage.aligned(v) for v in own))
        return [v for v in ended if v in near and (self.inner or v in self.alive)]

    def _last_readers(self) -> dict[Var, Equation]:
        """For each stored variable the last equation that reads it, itself or through what is computed from it."""
        last: dict[Var, Equation] = {}
        for eqn in self.jaxpr.eqns:
            if eqn.effects or any(map(self.storage.is_stored, eqn.outvars)):
                last.update(dict.fromkeys(self.storage.roots_of(eqn.invars), eqn))
        return last


def _taken(made: dict[Var, int], free: list[Var]) -> dict[Var, Var]:
    """The results that lie in the memory of what ends, with the variables that they replace."""
    taken, free = {}, list(free)
    for v, n in made.items():
        place = next((x for x in free if x.aval.nbytes == n), None)
        if place is not None:
            free.remove(place)
            taken[v] = place
    return taken


def inner_peak(eqn: Equation, platform: str) -> Moment:
    """The most that the jaxprs of an equation hold beside its operands and results."""
    if not isinstance(eqn.primitive, HigherOrder):
        return NOTHING
    return max((_of_body(eqn, jaxpr, platform) for jaxpr, _ in eqn.primitive.runs(eqn.params)), default=NOTHING)


def _of_body(eqn: Equation, jaxpr: Jaxpr, platform: str) -> Moment:
    moment = Liveness(jaxpr, platform, inner=True).run()
    pairs = list(zip(jaxpr.invars, eqn.invars, strict=False)) if len(jaxpr.invars) == len(eqn.invars) else []
    slices = sum(v.aval.nbytes for v, a in pairs if v.aval.nbytes < a.aval.nbytes)
    return moment._replace(bytes=moment.bytes + slices)
