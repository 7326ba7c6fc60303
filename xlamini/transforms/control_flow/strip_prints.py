"""Removal of debug effects from a jaxpr, so that recomputation (while loops in reverse mode) does not print twice."""
from __future__ import annotations

from xlamini.core import Equation, Jaxpr, rewrite
from xlamini.core.program.bindable import effects_of
from xlamini.core.program.rewriting import rewritten_params


@rewrite
def silent(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without its observing equations (prints), nested jaxprs included; the jaxpr itself if it has none."""
    if not any(effect.observing for effect in jaxpr.effects):
        return jaxpr
    return jaxpr.replace(eqns=[_silent(eqn) for eqn in jaxpr.eqns if not _only_observes(eqn)])


def _only_observes(eqn: Equation) -> bool:
    return bool(eqn.effects) and not eqn.outvars and all(effect.observing for effect in eqn.effects)


def _silent(eqn: Equation) -> Equation:
    if not eqn.effects or not eqn.primitive.higher_order:
        return eqn
    params = rewritten_params(eqn, silent)
    effects = effects_of(eqn.primitive, [a.aval for a in eqn.invars], params)
    return Equation(eqn.primitive, eqn.invars, eqn.outvars, params, effects, eqn.provenance, eqn.id)
