"""Memoised rules: a rule runs once per kind of equation; later equations of that kind inline its result.

A rewrite notes facts about the operands of an equation (which of them has a tangent, where its batch dimension is).
What it makes of a program of that one equation depends on the kind, the notes and the literals among the operands, and
is memoised on the kind.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Equation, Literal, ShapedArray
from xlamini.core.flags.config import trace_context_key
from xlamini.core.program.equation_kind import as_jaxpr, derived


def rewrite_once_per_kind(rewrite: Callable[..., Any], eqn: Equation, notes: Sequence[Any], *options: Any) -> Any:
    """What `rewrite(jaxpr, *options, notes)`, whose first result is a jaxpr, makes of a program of this equation only.

    `notes` are those on the operands; where an operand is a literal, the literal; where its value has another type than
    the equation says, which it may have by a rule, that type. None says that the rule must run in place: for such a
    type, for a kind that is not shared, or a rule that brings in values from outside, or raises, since the error is to
    be raised there.
    """
    kind = eqn.kind
    if kind is None or not kind.shared:
        return None
    key = (rewrite, trace_context_key(), *options, *notes)
    rewritten = kind.derived.get(key, kind)
    if rewritten is kind:  # not asked before
        return derived.keep(kind, key, _rewritten(rewrite, eqn, notes, options))
    derived.hits += 1
    return rewritten


def _rewritten(rewrite: Callable[..., Any], eqn: Equation, notes: Sequence[Any], options: Sequence[Any]) -> Any:
    if any(type(n) is ShapedArray for n in notes):
        return None
    try:
        made = rewrite(as_jaxpr(eqn), *options, tuple([n for n in notes if type(n) is not Literal]))
    except Exception:
        return None
    return None if made[0].constvars else made
