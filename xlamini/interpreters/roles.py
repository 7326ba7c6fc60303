"""What an equation computes, by the rewrites that made it: a primal value, a tangent, or a cotangent."""
from __future__ import annotations

from xlamini.core.program.jaxpr import Equation, Provenance

PRIMAL, TANGENT, COTANGENT = "primal", "tangent", "cotangent"
_FORWARD = ("jvp", "linearize", "jet")


def role_of(eqn: Equation, primals: dict[Provenance, Equation]) -> str:
    """The role of an equation of a program whose equations are asked about in order.

    A derivative rule computes the primal result first, by the primitive itself; `primals` notes that equation for each
    rule that ran. All others of the rule are tangents, or numbers that tangents are multiplied by.
    """
    role, this, here = PRIMAL, eqn, eqn.provenance
    while here.origin is not None:
        if here.rewrite == "transpose":
            return COTANGENT
        if here.rewrite in _FORWARD:
            own = this.primitive is here.origin.primitive and primals.setdefault(here, this) is this
            role = role if own else TANGENT
        this, here = here.origin, here.origin.provenance
    return role
