"""A rule runs once for all equations of a signature: a rewrite takes one alone, and its result is copied for the rest.

A rewrite makes notes on the operands of an equation (which of them has a tangent, where its batch dimension is). What
it makes of a program of one equation depends on the signature, the notes and the literals among the operands, and is
remembered with them. So a rule runs for the first of its like; for the others its result is inlined, as a call's is.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.config import trace_context_key
from xlamini.core.equation_kind import alone
from xlamini.core.jaxpr import Equation, Literal

_MOST = 64
"""Results kept of one signature: there may be another literal each time."""


def of_equation(rewrite: Callable[..., Any], eqn: Equation, notes: Sequence[Any], *options: Any) -> Any:
    """What `rewrite(jaxpr, *options, notes)`, whose first result is a jaxpr, makes of the equation alone.

    `notes` are those on the operands; where an operand is a literal, the literal; where its value has another type than
    the equation says, which it may have by a rule, that type. None says that the rule must run in place: for such a
    type, for an equation that is not like others, or a rule that brings in values from outside, or raises, since the
    error is to be raised there.
    """
    signature = eqn.signature
    if signature is None or not signature.shared:
        return None
    key = (rewrite, trace_context_key(), *options, *notes)
    found = signature.made.get(key, signature)
    if found is signature:  # not asked before
        if len(signature.made) >= _MOST:
            signature.made.clear()
        found = signature.made[key] = _made(rewrite, eqn, notes, options)
    return found


def _made(rewrite: Callable[..., Any], eqn: Equation, notes: Sequence[Any], options: Sequence[Any]) -> Any:
    if any(type(n) is ShapedArray for n in notes):
        return None
    try:
        made = rewrite(alone(eqn), *options, tuple([n for n in notes if type(n) is not Literal]))
    except Exception:
        return None
    return None if made[0].constvars else made
