"""A traced program as rules see it: its bodies, and in each who made and who reads a variable."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from xlamini.core import Atom, Equation, Jaxpr, Var, subjaxprs

_MOVES = {"broadcast_in_dim", "convert_element_type", "copy", "reshape", "squeeze", "stop_gradient"}
"""What changes only the type or the shape of a value."""
LOOPS = {"scan", "while"}


class LintedBody:
    """A jaxpr of the program: its equations, and the loops around it, outermost first."""

    jaxpr: Jaxpr
    loops: tuple[Equation, ...]

    def __init__(self, jaxpr: Jaxpr, loops: tuple[Equation, ...] = ()):
        self.jaxpr, self.loops = jaxpr, loops

    @cached_property
    def _makers(self) -> dict[Var, Equation]:
        return {v: eqn for eqn in self.jaxpr.eqns for v in eqn.outvars}

    @cached_property
    def readers(self) -> dict[Var, list[Equation]]:
        """The equations that read a variable; none if only the results have it."""
        found: dict[Var, list[Equation]] = defaultdict(list)
        for eqn in self.jaxpr.eqns:
            for v in dict.fromkeys(a for a in eqn.invars if type(a) is Var):
                found[v].append(eqn)
        return found

    @cached_property
    def live(self) -> set[Var]:
        """The variables that results or effects depend on."""
        found = {a for a in self.jaxpr.outvars if type(a) is Var}
        for eqn in reversed(self.jaxpr.eqns):
            if eqn.effects or not found.isdisjoint(eqn.outvars):
                found.update(a for a in eqn.invars if type(a) is Var)
        return found

    def is_live(self, eqn: Equation) -> bool:
        return bool(eqn.effects) or not self.live.isdisjoint(eqn.outvars)

    def maker(self, atom: Atom) -> Equation | None:
        """The equation that made the operand; None for literals and inputs."""
        return self._makers.get(atom) if type(atom) is Var else None

    def root(self, atom: Atom) -> Atom:
        """The operand before its type or shape was changed."""
        while (eqn := self.maker(atom)) is not None and eqn.primitive.name in _MOVES:
            atom = eqn.invars[0]
        return atom

    def root_maker(self, atom: Atom, *names: str) -> Equation | None:
        """The equation that made the root of the operand, if it is of one of these primitives."""
        eqn = self.maker(self.root(atom))
        return eqn if eqn is not None and eqn.primitive.name in names else None


class LintedProgram(NamedTuple):
    """A traced function: its program, the captured values, the arguments' names, and the targets it shall run on."""

    fun: Callable[..., Any]
    jaxpr: Jaxpr
    consts: Sequence[Any]
    bodies: list[LintedBody]
    names: Sequence[str]
    donated: Sequence[bool]
    targets: Sequence[str] = ()

    @property
    def body(self) -> LintedBody:
        """The outermost body."""
        return self.bodies[0]

    def equations(self, *names: str) -> Iterator[tuple[LintedBody, Equation]]:
        """All equations, or those of the primitives of these names, each with the body that it is in."""
        for body in self.bodies:
            for eqn in body.jaxpr.eqns:
                if not names or eqn.primitive.name in names:
                    yield body, eqn


def bodies_of(jaxpr: Jaxpr) -> list[LintedBody]:
    """The jaxpr and all inside of it, each once."""
    found: dict[Jaxpr, LintedBody] = {}
    _collect(found, jaxpr, ())
    return list(found.values())


def _collect(found: dict[Jaxpr, LintedBody], jaxpr: Jaxpr, loops: tuple[Equation, ...]) -> None:
    if jaxpr in found:
        return
    found[jaxpr] = LintedBody(jaxpr, loops)
    for eqn in jaxpr.eqns:
        around = (*loops, eqn) if eqn.primitive.name in LOOPS else loops
        for inner in subjaxprs(eqn):
            _collect(found, inner, around)


def apart(one: Equation, other: Equation) -> bool:
    """Whether two equations come from different calls in the user's program, not from inside of one of the library."""
    first, second = one.provenance.source, other.provenance.source
    if first is None or second is None:
        return False
    return (first.code, first.instruction) != (second.code, second.instruction)


def is_written(eqn: Equation) -> bool:
    """Whether the user wrote the operation, for an example or a batch; no derivative's rule made it."""
    place = eqn.provenance
    while place.origin is not None:
        if place.rewrite != "batch":
            return False
        place = place.origin.provenance
    return True


def is_number(atom: Atom, number: float) -> bool:
    """Whether the operand is this constant."""
    return type(atom) is not Var and atom.val == number
