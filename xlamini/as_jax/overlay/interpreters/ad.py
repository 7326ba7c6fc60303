"""`jax.interpreters.ad`: rules of derivatives, as views of the rules that primitives have."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import xlamini
from xlamini import extend
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.extend.linear_util import transformation2
from xlamini.as_jax.overlay.refusals import Trace
from xlamini.core.program.avals import Values
from xlamini.core.program.primitive import Primitive
from xlamini.extend import (
    Linear as UndefinedPrimal,
    Zero as Zero,
    instantiated as instantiate_zeros,
    is_linear as is_undefined_primal,
    jvp_rule as primitive_jvps,
    sum_of_tangents as add_tangents,
    transpose_rule as primitive_transposes,
)
from xlamini.primitives.base.tangent_ops import zeros as zeros_like_aval

__getattr__: Final = fall_through(__name__)

Rule = Callable[..., Any]


class _Differentiated(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return extend.is_differentiated(x)


class JVPTracer(metaclass=_Differentiated):
    """Values that have a tangent: they depend on an input of the derivative that is being taken.

    There is one class of traced values, so it has no objects of its own; `isinstance` is exact.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError("JVPTracer: traced values are made by jvp and grad; test for one with isinstance")


class JVPTrace(Trace):
    """The trace of derivatives; libraries ask whether a trace is one."""


@transformation2
def jvp(f: Rule, primals: Values, tangents: Values) -> Any:
    """The function of flat (primals, tangents) that returns those of the results."""
    flat = [instantiate_zeros(t) for t in tangents]
    outs, out_tangents = xlamini.jvp(lambda *xs: list(f(*xs)), tuple(primals), tuple(flat))
    return list(outs), list(out_tangents)


def get_primitive_transpose(primitive: Primitive) -> Rule:
    """The transpose rule of a primitive; KeyError if it has none."""
    return primitive_transposes[primitive]


def defjvp(primitive: Primitive, *rules: Rule | None) -> None:
    """Give one rule `rule(tangent, *primals, **params)` for each operand; None where there is no derivative."""

    def without_result(rule: Rule) -> Rule:
        return lambda tangent, out, *primals, **params: rule(tangent, *primals, **params)

    defjvp2(primitive, *(rule and without_result(rule) for rule in rules))


def defjvp2(primitive: Primitive, *rules: Rule | None) -> None:
    """Give one rule `rule(tangent, result, *primals, **params)` for each operand."""

    def jvp(primals: Values, tangents: Values, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        total = None
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                total = extend.sum_of_tangents(total, rule(tangent, out, *primals, **params))
        return out, Zero.from_primal_value(out) if total is None else total

    primitive_jvps[primitive] = jvp


def deflinear2(primitive: Primitive, transpose: Rule) -> None:
    """Give the transpose rule `rule(cotangent, *operands, **params)` of a primitive linear in all operands jointly."""

    def jvp(primals: Values, tangents: Values, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, _zeros(primitive, out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def deflinear(primitive: Primitive, transpose: Rule) -> None:
    """Give the transpose rule `rule(cotangent, **params)` of a primitive linear in all operands jointly."""
    deflinear2(primitive, lambda ct, *operands, **params: transpose(ct, **params))


def defbilinear(primitive: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Give the transpose rules of a product: `rule(ct, x, y, **params)` for `x` (`y` is known) and for `y`."""

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undefined_primal(x):
            return [None if type(ct) is Zero else lhs_rule(ct, x, y, **params), None]
        return [None, None if type(ct) is Zero else rhs_rule(ct, x, y, **params)]

    defjvp(
        primitive,
        lambda tangent, x, y, **params: primitive.bind(tangent, y, **params),
        lambda tangent, x, y, **params: primitive.bind(x, tangent, **params),
    )
    primitive_transposes[primitive] = transpose


def _zeros(primitive: Primitive, out: Any) -> Any:
    return [*map(Zero.from_primal_value, out)] if primitive.multiple_results else Zero.from_primal_value(out)
