"""Diagnosis of a nonlinear function for the error message of `linear_transpose`."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core import Jaxpr


def nonlinear_part(jaxpr: Jaxpr, linear: Sequence[bool]) -> str | None:
    """The first operation without a transpose rule that depends on a linear input, and its source line; or None."""
    reached = {v for v, is_linear in zip(jaxpr.invars, linear, strict=True) if is_linear}
    for eqn in jaxpr.eqns:
        if not reached.isdisjoint(eqn.invars):
            reached.update(eqn.outvars)
            if eqn.primitive.written("transpose") is None:
                return f"{eqn.primitive.name}, at {eqn.provenance.source}, is not linear"
    return None
