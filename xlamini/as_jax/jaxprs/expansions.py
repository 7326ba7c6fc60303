"""What JAX's primitives say in place of a primitive of xlamini alone.

Such a primitive has a formula, by which it is lowered: `lower` inlines it. The same formula is traced here.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core.avals import Avals, ShapedArray, Values, aval_of
from xlamini.core.jaxpr import Equation, Jaxpr
from xlamini.core.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import convert
from xlamini.primitives.arithmetic import neg
from xlamini.primitives.elementwise import mul
from xlamini.primitives.exponential import exp
from xlamini.primitives.linalg.eigh import eigh_p

Formula = Callable[..., Any]


class _Formulas:
    """In place of the context of a lowering: it calls what a rule inlines, and says what the rule asks."""

    platform = "any"

    def __init__(self, eqn: Equation):
        self.avals_in, self.aval_out = [a.aval for a in eqn.invars], eqn.outvars[0].aval

    def inline(self, formula: Formula, *operands: Any, avals: Avals | None = None) -> Any:
        return formula(*operands)


def _by_lowering(eqn: Equation, operands: Values) -> Any:
    return eqn.primitive.lower(_Formulas(eqn), *operands, **eqn.params)


def _by_formula(eqn: Equation, operands: Values) -> Any:
    return eqn.primitive.expanded(*operands, **eqn.params)  # pyright: ignore[reportAttributeAccessIssue]


def _gaussian(eqn: Equation, operands: Values) -> Any:
    (x,) = operands
    return exp(neg(mul(x, x)))


def _branch(eqn: Equation, operands: Values) -> Any:
    return evaluate(eqn.params["jaxpr"], operands)


def _root(eqn: Equation, operands: Values) -> Any:
    primitive: Any = eqn.primitive
    consts, vector = primitive.parted(operands, eqn.params["const_lengths"])
    return evaluate(eqn.params["solve"], [*consts["solve"], *vector])


def _eigenvalues(eqn: Equation, operands: Values) -> Any:
    return eigh_p.bind(*operands, **{**eqn.params, "vectors": True})[1:]


_FORMULAS: dict[str, Callable[[Equation, Values], Any]] = {
    **dict.fromkeys(("softmax", "logaddexp", "interleave", "window_repeat", "scatter-winners"), _by_lowering),
    "gaussian": _gaussian,
    "branch": _branch,
    "custom_root": _root,
    "eigh": _eigenvalues,
}


def expansion(eqn: Equation) -> Jaxpr | None:
    """The program that stands for an equation; None for one that JAX has too."""
    formula = _FORMULAS.get(eqn.primitive.name)
    if formula is None or eqn.params.get("vectors"):
        return None
    outs = [v.aval for v in eqn.outvars]

    def run(*operands: Any) -> list[Any]:
        found = formula(eqn, operands)
        results = found if eqn.primitive.multiple_results else [found]
        return [_typed(x, aval) for x, aval in zip(results, outs, strict=True)]

    return build(run, [a.aval for a in eqn.invars])[0]


def _typed(x: Any, aval: ShapedArray) -> Any:
    return x if aval_of(x) == aval else convert(x, aval.dtype, aval.weak_type)
