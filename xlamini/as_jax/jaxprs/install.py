"""Turning the translation on: programs are handed out in JAX's form, and taken back in it."""
from __future__ import annotations

from typing import Any

from xlamini.as_jax.jaxprs.binding import add_members, take_jax_params
from xlamini.as_jax.jaxprs.forms import Jaxpr
from xlamini.as_jax.jaxprs.names import call_copied, note_operators, public_function, trace_library_call
from xlamini.as_jax.jaxprs.outward import handed_out
from xlamini.as_jax.jaxprs.params import OPEN, TABLE
from xlamini.core import hooks
from xlamini.core.program.bindable import primitives
from xlamini.core.program.jaxpr import ClosedJaxpr, Equation, Jaxpr as CoreJaxpr

_format_jaxpr, _format_equation = hooks.format_jaxpr, hooks.format_equation


def install() -> None:
    """Fill the hooks."""
    hooks.install(
        handed_out=handed_out,
        primitive_made=take_jax_params,
        trace_library_call=trace_library_call,
        public_function=public_function,
        call_copied=call_copied,
        format_jaxpr=lambda jaxpr, **options: _format_jaxpr(shown(jaxpr), **options),
        format_equation=lambda eqn: _format_equation(shown_equation(eqn)),
    )
    add_members()
    note_operators()
    for primitive in primitives:
        take_jax_params(primitive)


# --- the text of programs in JAX's form: each equation shows of its params what the primitive chooses of its own ones


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
