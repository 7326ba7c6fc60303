"""Broadcast divisors: each division by a broadcast array gets a broadcast of its own.

XLA multiplies by the reciprocals of the array instead, of which there are fewer, but only where nothing else reads the
broadcast. In the gradient of a layer norm two divisions do, and it replaced one of them: so the same formula became
different kernels, each to be compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from xlamini.core import REMATERIALIZABLE, Equation, Jaxpr, Var, once
from xlamini.core.primitive import DIVIDES


@once
def with_own_divisors(jaxpr: Jaxpr) -> Sequence[Equation]:
    """The equations of a jaxpr, with the broadcast of a shared divisor once more before each that reads it again."""
    shared = _shared_divisors(jaxpr)
    if not shared:
        return jaxpr.eqns
    eqns, read = [], set()
    for eqn in jaxpr.eqns:
        for divisor in shared.keys() & eqn.invars:
            if divisor in read:
                eqns.append(shared[divisor])
            read.add(divisor)
        eqns.append(eqn)
    return eqns


def _shared_divisors(jaxpr: Jaxpr) -> Mapping[Var, Equation]:
    """The broadcasts of divisors that several equations read."""
    divisors = {eqn.invars[1] for eqn in jaxpr.eqns if eqn.primitive.traits & DIVIDES and type(eqn.invars[1]) is Var}
    if not divisors:
        return {}
    broadcasts = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars if v in divisors and _repeats(eqn)}
    readers = Counter(a for eqn in jaxpr.eqns for a in broadcasts.keys() & eqn.invars)
    return {v: eqn for v, eqn in broadcasts.items() if readers[v] > 1}


def _repeats(eqn: Equation) -> bool:
    """Whether an equation is a broadcast of an array."""
    if not eqn.primitive.traits & REMATERIALIZABLE or len(eqn.invars) != 1:
        return False
    return 1 < eqn.invars[0].aval.size < eqn.outvars[0].aval.size
