"""The text of programs in JAX's form: each equation shows of its params what the primitive chooses of its own ones."""
from __future__ import annotations

from typing import Any

from xlamini.as_jax.jaxprs.forms import Jaxpr
from xlamini.as_jax.jaxprs.params import OPEN, TABLE
from xlamini.core.jaxpr import ClosedJaxpr, Equation, Jaxpr as CoreJaxpr


def shown(jaxpr: CoreJaxpr) -> CoreJaxpr:
    """A program that prints like this one."""
    if not isinstance(jaxpr, Jaxpr):
        return jaxpr
    found = jaxpr.memo.get(shown)
    if found is None:
        eqns = list(map(shown_equation, jaxpr.eqns))
        found = jaxpr.memo[shown] = CoreJaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, eqns, jaxpr.name)
    return found


def shown_equation(eqn: Equation) -> Equation:
    """An equation that prints like this one."""
    row = TABLE.get(eqn.primitive.name)
    params = eqn.params
    if row is not None and row.is_jax(params) and eqn.primitive.name not in OPEN:
        params = row.back(params)
    return eqn.replace(params={name: _shown_param(value) for name, value in params.items()})


def _shown_param(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return shown(value.jaxpr)
    if isinstance(value, CoreJaxpr):
        return shown(value)
    return tuple(map(_shown_param, value)) if type(value) is tuple else value
