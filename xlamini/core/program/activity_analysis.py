"""Activity analysis: whether a traced value depends on what a derivative differentiates.

A Python number has no derivative. Where a transformation was called on concrete values, Python may still read numbers
from tracers, but one that depends on a differentiated input would be a constant to the derivative, which is then wrong.
Values of integer and boolean types have no derivative, and an equation may pass none on (stop_gradient, floor).
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xlamini.core import hooks
from xlamini.core.program.jaxpr import Var
from xlamini.core.program.tangents import is_differentiable
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import A_RULE, Builder, Tracer


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


@contextmanager
def derivative_given_by_rule() -> Iterator[None]:
    """Let Python read numbers as if the program being traced was not differentiated: a rule gives their derivative."""
    builder: Any = state.builder
    before, builder.derivative_by = builder.derivative_by, ""
    try:
        yield
    finally:
        builder.derivative_by = before


def may_have_tangent(x: Any) -> bool:
    """Whether a value of the program being traced may depend on what its derivative differentiates.

    Each equation is looked at once, however often this is asked. Of one that holds jaxprs, all results of active
    operands are taken for active.
    """
    builder: Any = state.builder
    if type(x) is not Tracer or x.builder is not builder:
        return False
    active, start = builder.memo.get(may_have_tangent) or ({v for v in builder.inputs if is_differentiable(v.aval)}, 0)
    for eqn in builder.equations[start:]:
        if not active.isdisjoint(eqn.invars):
            passes_on = [True] * len(eqn.outvars) if eqn.primitive.higher_order else hooks.results_with_tangents(eqn)
            pairs = zip(eqn.outvars, passes_on, strict=True)
            active.update(v for v, passed in pairs if passed and is_differentiable(v.aval))
    builder.memo[may_have_tangent] = active, len(builder.equations)
    return x.variable in active


def _has_tangent(eqn: Any, out: Var) -> bool:
    """Whether a result of an equation has a tangent where its operands have one."""
    return hooks.results_with_tangents(eqn)[eqn.outvars.index(out)]
