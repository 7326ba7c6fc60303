"""A run as one list of equations: loops are unrolled, and the branches that ran stand in place of conditionals.

The values of all variables are known, so that a question about a run (what became zero, what became NaN, what differs)
is a question about a straight line of equations. Calls of custom rules stay whole, since their derivative is a rule's.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core import Atom, Equation, Jaxpr, Literal, Values, Var, flatten_call
from xlamini.core.jaxpr import close_over
from xlamini.core.tracer import build
from xlamini.interpreters.environment import bound, builder, read, write
from xlamini.staging.run.make_jaxpr import make_jaxpr

MOST = 100_000
"""The number of equations of a run beyond which it is not unrolled."""

Loops = tuple[int, ...]
"""The iterations of the loops around an equation, outermost first."""


class Unrolled(NamedTuple):
    """A straight line of equations, the iterations that each is in, and the values of its variables."""

    jaxpr: Jaxpr
    loops: list[Loops]
    values: dict[Var, Any]

    def value(self, atom: Atom) -> Any:
        return atom.val if type(atom) is Literal else self.values[atom]


def unrolled_call(f: Callable[..., Any], args: Values, kwargs: dict[str, Any]) -> Unrolled:
    """The run of `f(*args, **kwargs)`."""
    closed = make_jaxpr(f)(*args, **kwargs)
    leaves, _ = flatten_call((args, kwargs))
    return unrolled(close_over(closed.jaxpr), [*closed.consts, *leaves])


def unrolled(jaxpr: Jaxpr, values: Values) -> Unrolled:
    """The run of a jaxpr without constvars for these values; ValueError if it has too many equations."""
    unrolling = _Unrolling()
    flat, captured = build(lambda *xs: unrolling.run(jaxpr, xs), jaxpr.in_avals, jaxpr.name, values=values)
    known = dict(zip([*flat.invars, *flat.constvars], [*values, *captured], strict=True))
    return Unrolled(flat, unrolling.loops, _evaluated(flat, known))


def _evaluated(flat: Jaxpr, values: dict[Var, Any]) -> dict[Var, Any]:
    for eqn in flat.eqns:
        write(values, eqn, eqn.primitive.bind(*read(values, eqn.invars), **eqn.params))
    return values


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
        target = builder()
        before, target.provenance = target.provenance, eqn.provenance
        try:
            outs = eqn.primitive.unroll(self.run, operands, eqn.params)
        finally:
            target.provenance = before
        return target.replay(eqn, operands) if outs is None else outs

    def _note_loops(self) -> None:
        count = len(builder().equations)
        if count > MOST:
            raise ValueError(f"the run has more than {MOST} equations, one for each iteration; give it fewer or smaller")
        self.loops.extend([self.here] * (count - len(self.loops)))
