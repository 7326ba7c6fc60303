"""Expansion before compilation: what an `expand` rule captured joins the captured values of the program."""
from __future__ import annotations

from xlamini.core import Jaxpr, Values, close_over
from xlamini.interpreters.expand import expand, is_expanded
from xlamini.staging.trace.tracing import Trace


def expanded(jaxpr: Jaxpr, inputs: Values) -> tuple[Jaxpr, Values]:
    """The program in terms of primitives that are lowered, and its inputs: what their rules captured comes first."""
    if is_expanded(jaxpr):
        return jaxpr, inputs
    whole = expand(jaxpr)
    return close_over(whole), [*whole.consts, *inputs]


def expanded_trace(traced: Trace) -> Trace:
    """The trace of the program in terms of primitives that are lowered."""
    jaxpr, captured = expanded(traced.jaxpr, traced.captured)
    return traced if jaxpr is traced.jaxpr else traced._replace(jaxpr=jaxpr, captured=list(captured))
