"""What is wrong with a function that should be linear, for the error that says so."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core.jaxpr import Jaxpr


def nonlinear_part(jaxpr: Jaxpr, linear: Sequence[bool]) -> str | None:
    """The first operation on values that depend on a linear input that never is linear, and the user's line."""
    reached = {v for v, is_linear in zip(jaxpr.invars, linear, strict=True) if is_linear}
    for eqn in jaxpr.eqns:
        if not reached.isdisjoint(eqn.invars):
            reached.update(eqn.outvars)
            if eqn.primitive.written("transpose") is None:
                return f"{eqn.primitive.name}, at {eqn.provenance.source}, is not linear"
    return None
