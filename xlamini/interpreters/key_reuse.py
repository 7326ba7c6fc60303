"""Random keys that a program uses twice: an analysis of a jaxpr, memoised on it; a program without keys is not read.

Each primitive says in its facet `checks` which keys it consumes. A key is known by the variable that it comes from and
the slices that were taken of it. Where that is not known, as after a gather, it counts as a key of its own: what is
reported is a reuse, and some are not found.
"""
from __future__ import annotations

from xlamini.core import Jaxpr, Var, once, subjaxprs
from xlamini.core.program.jaxpr import Equation
from xlamini.core.program.key_uses import NO_USES, Consumed, KeyPart, KeyUses, Path, Reuse, overlap


@once
def draws(jaxpr: Jaxpr) -> bool:
    """Whether it consumes keys, in the jaxprs of its equations too."""
    return any(
        any(map(draws, subjaxprs(eqn))) if eqn.primitive.higher_order else eqn.primitive.checks.uses_of(eqn).consumed
        for eqn in jaxpr.eqns
    )


@once
def key_uses(jaxpr: Jaxpr) -> KeyUses:
    """What a program does with the keys among its inputs, and the keys that it uses twice."""
    return _Keys(jaxpr).uses() if draws(jaxpr) else NO_USES


class _Keys:
    """The keys of a program: where each comes from, and the equations that have consumed it."""

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr = jaxpr
        self.origins: dict[Var, tuple[Var, Path]] = {}
        self.consumed: dict[Var, list[tuple[Path, Equation]]] = {}
        self.reuses: list[Reuse] = []

    def uses(self) -> KeyUses:
        for eqn in self.jaxpr.eqns:
            self._apply(eqn, eqn.primitive.checks.uses_of(eqn))
        numbers = {v: i for i, v in enumerate(self.jaxpr.invars)}
        consumed = [Consumed(numbers[v], path) for v, uses in self.consumed.items() if v in numbers for path, _ in uses]
        return KeyUses(tuple(consumed), tuple(self._parts(numbers)), tuple(self.reuses))

    def _parts(self, numbers: dict[Var, int]) -> list[KeyPart]:
        outs = [(i, *self._origin(v)) for i, v in enumerate(self.jaxpr.outvars) if isinstance(v, Var)]
        return [KeyPart(i, numbers[v], path) for i, v, path in outs if v in numbers]

    def _origin(self, var: Var) -> tuple[Var, Path]:
        return self.origins.get(var, (var, ()))

    def _apply(self, eqn: Equation, uses: KeyUses) -> None:
        self.reuses += uses.reuses
        for result, operand, path in uses.parts:
            if isinstance(atom := eqn.invars[operand], Var):
                origin, before = self._origin(atom)
                self.origins[eqn.outvars[result]] = origin, before + path
        for operand, path in uses.consumed:
            if isinstance(atom := eqn.invars[operand], Var):
                self._consume(eqn, atom, path)

    def _consume(self, eqn: Equation, var: Var, path: Path) -> None:
        origin, before = self._origin(var)
        earlier = self.consumed.setdefault(origin, [])
        first = next((e for there, e in earlier if e is not eqn and overlap(there, before + path)), None)
        if first is not None:
            self.reuses.append(Reuse(first, eqn))
        earlier.append((before + path, eqn))


def uses_of_call(jaxpr: Jaxpr, offset: int = 0) -> KeyUses:
    """The uses of an equation that runs a jaxpr once, whose operands are those from `offset` on."""
    uses = key_uses(jaxpr)
    consumed = tuple(use._replace(operand=use.operand + offset) for use in uses.consumed)
    return KeyUses(consumed, tuple(p._replace(operand=p.operand + offset) for p in uses.parts), uses.reuses)


def uses_of_loop(eqn: Equation, jaxpr: Jaxpr, num_consts: int, num_carry: int, offset: int = 0) -> KeyUses:
    """The uses of a loop with this body: what all iterations share, and what the carry keeps, is consumed again."""
    uses = key_uses(jaxpr)
    kept = {part.operand for part in uses.parts if part.operand == part.result + num_consts < num_consts + num_carry}
    repeated = [use for use in uses.consumed if use.operand < num_consts or use.operand in kept]
    consumed = tuple(Consumed(use.operand + offset) for use in uses.consumed)
    return KeyUses(consumed, (), uses.reuses + (Reuse(eqn, eqn),) * bool(repeated))
