"""Activity analysis: whether a traced value depends on what a derivative differentiates.

A Python number has no derivative. Where a transformation was called on concrete values, Python may still read numbers
from tracers, but one that depends on a differentiated input would be a constant to the derivative, which is then wrong.
Values of integer and boolean types have no derivative, and an equation may pass none on (stop_gradient, floor).
"""
from __future__ import annotations

from typing import Any

from xlamini.core import hooks
from xlamini.core.jaxpr import Var
from xlamini.core.tangents import is_differentiable
from xlamini.core.tracer import A_RULE, Builder, Tracer


def differentiated_input(x: Any) -> tuple[Builder, Var] | None:
    """A differentiated input on which a value depends, and the builder that it is an input of; None without one."""
    if type(x) is not Tracer or x.builder.derivative_by == A_RULE:
        return None
    builder, seen, pending = x.builder, set(), [x.variable]
    producers, captured = builder.producers_by_now(), dict(builder.captured.values())
    while pending:
        atom = pending.pop()
        if type(atom) is not Var or atom in seen or not is_differentiable(atom.aval):
            continue
        seen.add(atom)
        eqn = producers.get(atom)
        if eqn is not None:
            pending.extend(eqn.invars if _has_tangent(eqn, atom) else ())
            continue
        if builder.derivative_by and builder.is_tracing() and atom not in captured:
            return builder, atom
        outer = differentiated_input(captured.get(atom, builder.known.get(atom)))
        if outer is not None:
            return outer
    return None


def _has_tangent(eqn: Any, out: Var) -> bool:
    """Whether a result of an equation has a tangent where its operands have one."""
    return hooks.results_with_tangents(eqn)[eqn.outvars.index(out)]
