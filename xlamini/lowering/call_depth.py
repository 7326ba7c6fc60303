"""The depth of calls: XLA's conversion of StableHLO recurs for each function that a function calls.

It overflows the stack of its thread at some 180 functions, one inside another. So of a deeper nest the outer calls are
inlined while it is lowered, which leaves one of 64.
"""

from __future__ import annotations

from xlamini.core import Jaxpr, once, subjaxprs

DEEPEST = 64


def is_too_deep(jaxpr: Jaxpr) -> bool:
    """Whether a function that computes this jaxpr would be one of too many, each inside the one before."""
    return _height(jaxpr) >= DEEPEST


@once
def _height(jaxpr: Jaxpr) -> int:
    inside = [inner for eqn in jaxpr.eqns if eqn.primitive.higher_order for inner in subjaxprs(eqn)]
    return 1 + max(map(_height, inside), default=0)
