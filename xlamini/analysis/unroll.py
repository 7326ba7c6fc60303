"""A run as one list of equations: loops are unrolled, and the branches that ran stand in place of conditionals.

The values of all variables are known, so that a question about a run (what became zero, what became NaN, what differs)
is a question about a straight line of equations. Calls of custom rules stay whole, since their derivative is a rule's.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from xlamini.core import Atom, Equation, Jaxpr, Literal, Values, Var
from xlamini.core.program.bindable import further
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, read, write

MOST = 100_000
"""The number of equations of a run beyond which it is not unrolled."""

Loops = tuple[int, ...]
"""The iterations of the loops around an equation, outermost first."""


class Straight(NamedTuple):
    """A straight line of equations, the iterations that each is in, and the values of its inputs."""

    jaxpr: Jaxpr
    loops: list[Loops]
    inputs: dict[Var, Any]

    def steps(self, values: dict[Var, Any]) -> Iterator[tuple[Equation, Loops]]:
        """Run one equation after another, and yield each when `values` has its results."""
        values.update(self.inputs)
        for eqn, loops in zip(self.jaxpr.eqns, self.loops, strict=True):
            write(values, eqn, eqn.primitive.bind(*read(values, eqn.invars), **eqn.params))
            yield eqn, loops


class Unrolled(NamedTuple):
    """A straight line of equations, the iterations that each is in, and the values of its variables."""

    jaxpr: Jaxpr
    loops: list[Loops]
    values: dict[Var, Any]

    def value(self, atom: Atom) -> Any:
        return atom.val if type(atom) is Literal else self.values[atom]


def straightened(jaxpr: Jaxpr, values: Values) -> Straight:
    """The equations that a jaxpr without constvars runs for these values; ValueError if they are too many."""
    unrolling = _Unrolling()
    flat, captured = build(lambda *xs: unrolling.run(jaxpr, xs), jaxpr.in_avals, jaxpr.name, values=values)
    inputs = dict(zip([*flat.invars, *flat.constvars], [*values, *captured], strict=True))
    return Straight(flat, unrolling.loops, inputs)


def unrolled(jaxpr: Jaxpr, values: Values) -> Unrolled:
    """The run of a jaxpr without constvars for these values."""
    straight, known = straightened(jaxpr, values), {}
    for _ in straight.steps(known):
        pass
    return Unrolled(straight.jaxpr, straight.loops, known)


class _Unrolling:
    """The loops around each equation so far, and around the one that is being unrolled."""

    def __init__(self) -> None:
        self.loops: list[Loops] = []
        self.here: Loops = ()

    def run(self, jaxpr: Jaxpr, operands: Values, iteration: int | None = None) -> list[Any]:
        outer = self.here
        if iteration is not None:
            self.here = (*outer, iteration)
        env = bound(jaxpr, operands)
        for eqn in jaxpr.eqns:
            env.update(zip(eqn.outvars, self._results(eqn, read(env, eqn.invars)), strict=True))
            self._note_loops()
        self.here = outer
        return read(env, jaxpr.outvars)

    def _results(self, eqn: Equation, operands: Values) -> Sequence[Any]:
        target, unroll = builder(), further(eqn.primitive, "unroll")
        before, target.provenance = target.provenance, eqn.provenance
        try:
            outs = None if unroll is None else unroll(self.run, operands, eqn.params)
        finally:
            target.provenance = before
        return target.replay(eqn, operands) if outs is None else outs

    def _note_loops(self) -> None:
        count = len(builder().equations)
        if count > MOST:
            raise ValueError(
                f"the run has more than {MOST} operations, counting each iteration of its loops; try it with fewer"
            )
        self.loops.extend([self.here] * (count - len(self.loops)))
