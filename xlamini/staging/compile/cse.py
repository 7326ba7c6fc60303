"""Merging of equal equations, as XLA does on the CPU, where it removes optimization barriers first."""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from xlamini.core import Atom, CallLike, Equation, Jaxpr, Literal, Var
from xlamini.interpreters.inline import inline_calls
from xlamini.staging.call.higher_order import HigherOrder


def merge(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with each operation on equal operands once, so that no forward value is computed again."""
    jaxpr = _with_recomputations_inline(jaxpr)
    same: dict[Atom, Atom] = {}
    first: dict[Hashable, Equation] = {}
    kept: list[Equation] = []
    for eqn in jaxpr.eqns:
        invars = [same.get(a, a) for a in eqn.invars]
        if eqn.primitive.sharding.maps_each and not eqn.effects:
            same.update(zip(eqn.outvars, invars, strict=True))
            continue
        merged = first.setdefault(_key(eqn, invars), eqn)
        if merged is not eqn:
            same.update(zip(eqn.outvars, merged.outvars, strict=True))
        else:
            kept.append(eqn.replace(invars=invars))
    return jaxpr.replace(eqns=kept, outvars=[same.get(a, a) for a in jaxpr.outvars])


def _with_recomputations_inline(jaxpr: Jaxpr) -> Jaxpr:
    for primitive in {eqn.primitive for eqn in jaxpr.eqns if _recomputes(eqn)}:
        assert isinstance(primitive, CallLike)
        jaxpr = inline_calls(jaxpr, primitive)
    return jaxpr


def _recomputes(eqn: Equation) -> bool:
    primitive = eqn.primitive
    return isinstance(primitive, CallLike) and isinstance(primitive, HigherOrder) and primitive.recomputes(eqn.params)


def _key(eqn: Equation, invars: list[Atom]) -> Hashable:
    kind: Any = eqn.kind
    if kind is None or eqn.effects:
        return eqn
    return kind, *(a if type(a) is Var else _of_literal(a) for a in invars)


def _of_literal(literal: Any) -> Hashable:
    assert type(literal) is Literal
    return str(literal.val), literal.aval
