"""Signatures: what equations of one primitive, with equal params and operands of the same types, have in common.

There is one `Signature` for all of them, in every program. It knows the types of their results, so that a shape rule
runs once; and what a rewrite makes of one such equation, so that a derivative rule runs once too (`alone`).
"""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from xlamini.core.jaxpr import Effects, Equation, Jaxpr, Var, no_effects
from xlamini.core.provenance import Provenance

_MOST = 4096


class Signature:
    """The types of the results (`out`: one, or a list), the effects, and what rewrites make of such an equation.

    `complaint` says what of the operands does not fit together. Without one, results are split over a mesh just as
    their types say; with one, the compiler may split them further.
    """

    __slots__ = ("complaint", "effects", "made", "out", "shared")

    def __init__(self, out: Any, effects: Effects = no_effects, complaint: str | None = None):
        self.out, self.effects, self.shared, self.complaint = out, effects, False, complaint
        self.made: dict[tuple, Any] = {}


signatures: dict[Hashable, Signature] = {}
"""By primitive, types of operands, and params; of pure primitives alone."""


def remember(key: Hashable, signature: Signature, params: dict[str, Any]) -> None:
    """Let equations of this key share the signature."""
    if not any(map(_is_ambiguous, params.values())):
        if len(signatures) >= _MOST:
            signatures.clear()
        signatures[key] = signature
        signature.shared = True


def _is_ambiguous(param: Any) -> bool:
    """Whether it equals something that means another thing: 0.0 is -0.0; or not even itself, as nan."""
    if isinstance(param, tuple | list):
        return any(map(_is_ambiguous, param))
    return isinstance(param, float | complex) and (param == 0 or param != param)


def alone(eqn: Equation) -> Jaxpr:
    """The program of this equation alone, whose inputs are variables for its variables; its literals stay."""
    operands = [Var(a.aval) if type(a) is Var else a for a in eqn.invars]
    results = [Var(v.aval) for v in eqn.outvars]
    # Without its signature, so that rewrites of this program run the rule.
    only = Equation(eqn.primitive, operands, results, eqn.params, eqn.effects, Provenance(None), 0)
    return Jaxpr([], [v for v in operands if type(v) is Var], results, [only])
