"""A program without its printing: for one that computes again what another one has printed already."""
from __future__ import annotations

from typing import Any

from xlamini.core.jaxpr import Equation, Jaxpr
from xlamini.core.rewriting import rewrite


@rewrite
def silent(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without the equations that only observe, also inside of others; itself if it has none."""
    if not any(effect.observing for effect in jaxpr.effects):
        return jaxpr
    return jaxpr.replace(eqns=[_silent(eqn) for eqn in jaxpr.eqns if not _only_observes(eqn)])


def _only_observes(eqn: Equation) -> bool:
    return bool(eqn.effects) and not eqn.outvars and all(effect.observing for effect in eqn.effects)


def _silent(eqn: Equation) -> Equation:
    if not eqn.effects or not eqn.primitive.higher_order:
        return eqn
    params = {name: _param(value) for name, value in eqn.params.items()}
    effects = eqn.primitive.effects(params)
    return Equation(eqn.primitive, eqn.invars, eqn.outvars, params, effects, eqn.provenance, eqn.id)


def _param(value: Any) -> Any:
    if isinstance(value, Jaxpr):
        return silent(value)
    if isinstance(value, tuple) and any(isinstance(x, Jaxpr) for x in value):
        return tuple(map(_param, value))
    return value
