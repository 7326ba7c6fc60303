"""Which values of a program are in memory, and when: liveness over the equations whose results XLA stores.

A result may take the memory of an operand that ends there. Results of the program have their memory from the start, as
XLA allocates them, and those of a loop's body end with it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr, ShapedArray, Var
from xlamini.staging.call.higher_order import HigherOrder
from xlamini.staging.compile.fusion_model import Storage


class Held(NamedTuple):
    """A stored value: its type, the equation that made it (None: an input), and the last that needs it."""

    aval: ShapedArray
    maker: Equation | None
    last: Equation | None


class Moment(NamedTuple):
    """The bytes in memory beside the program's inputs and results, at an equation, and what they are."""

    bytes: int
    path: tuple[Equation, ...]
    held: tuple[Held, ...]


NOTHING = Moment(0, (), ())


class Liveness:
    """One pass over a jaxpr: what its equations hold on a platform, and the moment at which that is most.

    The results of an inner jaxpr are counted with what it holds, those of the whole program are not.
    """

    elsewhere: set[Any] | set[Var]
    inner: bool
    jaxpr: Jaxpr
    platform: str
    storage: Storage

    def __init__(self, jaxpr: Jaxpr, platform: str, inner: bool = False):
        self.jaxpr, self.storage, self.platform = jaxpr, Storage(jaxpr), platform
        self.eqns: list[Equation] = breadth_first(jaxpr) if platform == "cpu" else jaxpr.eqns
        results = self.storage.roots_of(jaxpr.outvars)
        self.inner, self.elsewhere = inner, set() if inner else set(results)
        self.kept: set[Var] = set(results)
        self.last: dict[Var, Equation] = self._last_readers()
        self.alive: dict[Var, int] = {}
        self.peak: Moment = NOTHING

    def run(self) -> Moment:
        """The moment at which most is held."""
        for eqn in self.eqns:
            made = [v for v in eqn.outvars if self.storage.is_stored(v)]
            if made or eqn.effects:
                self._store(eqn, made)
        return self.peak

    def _store(self, eqn: Equation, made: Sequence[Var]) -> None:
        ended = [v for v in self.storage.roots_of(eqn.invars) if self.last.get(v) is eqn and v not in self.kept]
        own = {v: v.aval.nbytes for v in made if v not in self.elsewhere}
        taken = self._taken(own, self._replaced(eqn, own, ended))
        in_inputs = {v for v, place in taken.items() if place not in self.alive}  # which are counted outside
        self.alive |= own
        self._note(eqn, taken)
        for v in (*ended, *in_inputs, *(v for v in own if v not in self.last and v not in self.kept)):
            self.alive.pop(v, None)

    def _note(self, eqn: Equation, taken: dict[Var, Var]) -> None:
        inside = inner_peak(eqn, self.platform)
        now = self._bytes_at(eqn, taken, inside)
        if now > self.peak.bytes:
            self.peak = Moment(now, (eqn, *inside.path), (*map(self._held, self.alive), *inside.held))

    def _bytes_at(self, eqn: Equation, taken: dict[Var, Var], inside: Moment) -> int:
        """The bytes in memory at an equation, with what its jaxprs hold and what its kernel works in."""
        avals = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        working = eqn.primitive.memory.workspace(self.platform, *avals, **eqn.params)
        return sum(n for v, n in self.alive.items() if v not in taken) + inside.bytes + working

    def _held(self, var: Var) -> Held:
        return Held(var.aval, self.storage.makers.get(var), self.last.get(var))

    def _replaced(self, eqn: Equation, own: dict[Var, int], ended: Sequence[Var]) -> list[Var]:
        """What ends here and may become a result: operands that a loop reads at its own positions, and carries."""
        if eqn.primitive.higher_order:
            return [v for v in ended if v in self.alive]
        near: set[Var] = set().union(*(self.storage.aligned(v) for v in own))
        return [v for v in ended if v in near and (self.inner or v in self.alive)]

    def _taken(self, made: dict[Var, int], free: list[Var]) -> dict[Var, Var]:
        """The results that lie in the memory of what ends, with the variables that they replace."""
        taken, free = {}, list(free)
        for v, n in made.items():
            place = next((x for x in free if x.aval.nbytes == n), None)
            if place is not None:
                free.remove(place)
                taken[v] = place
        return taken

    def _last_readers(self) -> dict[Var, Equation]:
        """For each stored variable the last equation that reads it, itself or through what is computed from it."""
        last: dict[Var, Equation] = {}
        for eqn in self.eqns:
            if eqn.effects or any(map(self.storage.is_stored, eqn.outvars)):
                last.update(dict.fromkeys(self.storage.roots_of(eqn.invars), eqn))
        return last


def breadth_first(jaxpr: Jaxpr) -> list[Equation]:
    """The equations as XLA orders them on the CPU: what waits for least is first, for its threads."""
    waits: dict[Var, int] = {}
    for eqn in jaxpr.eqns:
        longest = max((waits.get(a, 0) for a in eqn.invars if type(a) is Var), default=0)
        waits.update(dict.fromkeys(eqn.outvars, longest + 1))
    return sorted(jaxpr.eqns, key=lambda eqn: waits[eqn.outvars[0]] if eqn.outvars else len(jaxpr.eqns))


def inner_peak(eqn: Equation, platform: str) -> Moment:
    """The most that the jaxprs of an equation hold beside its operands and results."""
    if not isinstance(eqn.primitive, HigherOrder):
        return NOTHING
    moments = [_of_body(eqn, jaxpr, platform) for jaxpr, _ in eqn.primitive.runs(eqn.params)]
    return max(moments, key=lambda moment: moment.bytes, default=NOTHING)


def _of_body(eqn: Equation, jaxpr: Jaxpr, platform: str) -> Moment:
    moment = Liveness(jaxpr, platform, inner=True).run()
    pairs = list(zip(jaxpr.invars, eqn.invars, strict=False)) if len(jaxpr.invars) == len(eqn.invars) else []
    slices = sum(v.aval.nbytes for v, a in pairs if v.aval.nbytes < a.aval.nbytes)
    return moment._replace(bytes=moment.bytes + slices)
