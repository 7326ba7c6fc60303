"""Turning the translation on: programs are handed out in JAX's form, and taken back in it."""
from __future__ import annotations

from xlamini.as_jax.jaxprs.binding import add_members, take_jax_params
from xlamini.as_jax.jaxprs.names import call_copied, note_operators, public_function, trace_library_call
from xlamini.as_jax.jaxprs.outward import handed_out
from xlamini.as_jax.jaxprs.printing import shown, shown_equation
from xlamini.core import hooks
from xlamini.core.bindable import primitives

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
