"""Broadcast divisors: each division by a broadcast array gets a broadcast of its own.

XLA multiplies by the reciprocals of the array instead, of which there are fewer, but only where nothing else reads the
broadcast. In the gradient of a layer norm two divisions do, of which it replaces one or the other, so that equal
formulas of a layer become different kernels, each to be compiled.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from xlamini.core import REMATERIALIZABLE, Equation, Jaxpr, Var


def with_own_divisors(jaxpr: Jaxpr) -> Jaxpr:
    """The program with the broadcast of a shared divisor once more for each equation that reads it again."""
    shared = _shared_divisors(jaxpr)
    if not shared:
        return jaxpr
    eqns: list[Equation] = []
    read: set[Var] = set()
    for eqn in jaxpr.eqns:
        divisors = shared.keys() & eqn.invars
        again = {v: shared[v].copied(shared[v].invars, shared[v].id) for v in divisors & read}
        read |= divisors
        eqns += [*again.values(), _reading(eqn, {v: each.outvars[0] for v, each in again.items()})]
    return jaxpr.replace(eqns=eqns)


def _shared_divisors(jaxpr: Jaxpr) -> Mapping[Var, Equation]:
    """The broadcasts of divisors that several equations read."""
    divisors = {eqn.invars[1] for eqn in jaxpr.eqns if eqn.primitive.memory.divides}
    broadcasts = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars if v in divisors and _repeats(eqn)}
    readers = Counter(a for eqn in jaxpr.eqns for a in broadcasts.keys() & eqn.invars) if broadcasts else {}
    return {v: eqn for v, eqn in broadcasts.items() if readers[v] > 1}


def _repeats(eqn: Equation) -> bool:
    """Whether an equation is a broadcast of an array."""
    if not eqn.primitive.traits & REMATERIALIZABLE or len(eqn.invars) != 1:
        return False
    return 1 < eqn.invars[0].aval.size < eqn.outvars[0].aval.size


def _reading(eqn: Equation, instead: Mapping[Var, Var]) -> Equation:
    """The equation with other operands in the place of some; its results are the same variables."""
    if not instead:
        return eqn
    invars = [instead.get(a, a) if type(a) is Var else a for a in eqn.invars]
    return Equation(eqn.primitive, invars, eqn.outvars, eqn.params, eqn.effects, eqn.provenance, eqn.id, eqn.kind)
