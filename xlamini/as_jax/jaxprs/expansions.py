"""What JAX's primitives say in place of a primitive of xlamini alone.

Such a primitive has a form, by which it is lowered on every platform. The same form is traced here.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.as_jax.jaxprs.carrier import Carrier
from xlamini.core.program.avals import Params, ShapedArray, Values, aval_of
from xlamini.core.program.form import Platform
from xlamini.core.program.jaxpr import Equation, Jaxpr
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import convert
from xlamini.primitives.base.dtype_kinds import is_complex
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.elementwise.arithmetic import abs, add, div, max, neg, sub
from xlamini.primitives.elementwise.comparison import ne
from xlamini.primitives.elementwise.complex import conj, real
from xlamini.primitives.elementwise.exponential import exp, log1p
from xlamini.primitives.elementwise.power import sqrt
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.placement.identity import stop_gradient
from xlamini.primitives.reductions.ordering import lowest
from xlamini.primitives.reductions.reductions import reduce_max, wide_sum
from xlamini.primitives.shape.shape import broadcast_in_dim, sum_over

Formula = Callable[..., Any]


_ANY = Platform("any")


def _by_form(eqn: Equation, operands: Values) -> Any:
    avals, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    form = eqn.primitive.form(_ANY, avals, outs, eqn.params)
    assert form is not None
    return form.compute(*operands)


def _softmax(eqn: Equation, operands: Values) -> Any:
    """With the steps of JAX's, of which the maximum has no derivative."""
    (x,), axes, aval = operands, eqn.params["axes"], eqn.outvars[0].aval
    kept = [d for d in range(aval.ndim) if d not in axes]
    largest = max(lowest(aval.dtype), reduce_max(x, axes))
    powers = exp(sub(x, stop_gradient(broadcast_in_dim(largest, aval.shape, kept))))
    return div(powers, broadcast_in_dim(wide_sum(powers, axes), aval.shape, kept))


def _logaddexp(eqn: Equation, operands: Values) -> Any:
    """The sum of equal infinities takes the place of what has no difference, as in JAX's."""
    x, y = operands
    difference = sub(x, y)
    total = add(max(x, y), log1p(exp(neg(abs(difference)))))
    return select_n(ne(difference, difference), total, add(x, y))


def _gaussian(eqn: Equation, operands: Values) -> Any:
    (x,) = operands
    return exp(neg(mul(x, x)))


def _iterate(eqn: Equation, operands: Values) -> Any:
    """The loop of a formula, whose state begins with a number and whether it goes on."""
    from xlamini.transforms.while_loop.primitive import while_p  # imported here, as few programs have such a loop

    step, holds = eqn.params["step"], eqn.params["holds"]
    count = len(step.out_avals)
    captured, avals = len(operands) - count, [aval_of(x) for x in operands]
    body, _ = build(lambda *xs: evaluate(step, [*xs[: captured + 1], *xs[captured + 2 :]]), avals)
    cond, _ = build(lambda n, going, *state: evaluate(holds, [n, going]), avals[captured:])
    return while_p.bind(*operands, cond_nconsts=0, cond_jaxpr=cond, body_nconsts=captured, body_jaxpr=body)


def _branch(eqn: Equation, operands: Values) -> Any:
    return evaluate(eqn.params["jaxpr"], operands)


def _root(eqn: Equation, operands: Values) -> Any:
    primitive: Any = eqn.primitive
    consts, vector = primitive.split_vector(operands, eqn.params["const_lengths"])
    return evaluate(eqn.params["solve"], [*consts["solve"], *vector])


def _eigenvalues(eqn: Equation, operands: Values) -> Any:
    return eqn.primitive.bind(*operands, **{**eqn.params, "vectors": True})[1:]


def _length(eqn: Equation, operands: Values) -> Any:
    """The root of the sum of squares, as JAX computes a norm: outside of its range it overflows."""
    (x,) = operands
    square = real(mul(x, conj(x))) if is_complex(x) else mul(x, x)
    return sqrt(sum_over(square, eqn.params["axes"]))


_BY_FORM = (
    "bounded interleave window_repeat scatter-winners expn random_gamma_grad one_minus_square erfc_inv sech_squared"
).split()

_FORMULAS: dict[str, Callable[[Equation, Values], Any]] = {
    **dict.fromkeys(_BY_FORM, _by_form),
    "euclidean_norm": _length,
    "iterate": _iterate,
    "softmax": _softmax,
    "gaussian": _gaussian,
    "branch": _branch,
    "custom_root": _root,
    "eigh": _eigenvalues,
}


_WITH_RULE = {"logaddexp": _logaddexp}
"""Of those that are `custom_jvp` functions in JAX."""


def expansion(eqn: Equation) -> Jaxpr | None:
    """The program that stands for an equation; None for one that JAX has too."""
    formula = _FORMULAS.get(eqn.primitive.name)
    if formula is None or eqn.params.get("vectors"):
        return None
    return _traced(eqn, formula)


def as_custom_jvp(eqn: Equation) -> tuple[Any, Params] | None:
    """The primitive and params of a call with a rule that stands for an equation; None for any other equation."""
    formula = _WITH_RULE.get(eqn.primitive.name)
    if formula is None:
        return None
    from xlamini.transforms.custom.custom_jvp import custom_jvp_call_p  # imported here, as few programs have it

    name, program = str(eqn.primitive), _traced(eqn, formula)
    rule = Carrier(f"jvp of {name}", {"name": name, "jvp": f"jvp of {name}"}, (eqn.primitive, program))
    return custom_jvp_call_p, {"call_jaxpr": program, "jvp_jaxpr_fun": rule, "num_consts": 0, "symbolic_zeros": False}


def _traced(eqn: Equation, formula: Formula) -> Jaxpr:
    outs = [v.aval for v in eqn.outvars]

    def run(*operands: Any) -> list[Any]:
        found = formula(eqn, operands)
        results = found if eqn.primitive.multiple_results else [found]
        return [_typed(x, aval) for x, aval in zip(results, outs, strict=True)]

    return build(run, [a.aval for a in eqn.invars])[0]


def _typed(x: Any, aval: ShapedArray) -> Any:
    return x if aval_of(x) == aval else convert(x, aval.dtype, aval.weak_type)
