"""The platform's choice, as a rewrite: each equation in the form that its primitive has for the platform.

    specialize(jaxpr, (Platform("cpu"),))  ->  jaxpr with `form` equations, one StableHLO operation for each other one

A `form` equation calls the program that computes the equation it stands in for. That program is traced once for all
equations of a kind, and becomes one function of the module, so a form of 200 equations does not make programs longer.
Operands, results, ids and provenance stay those of the equation. Inside of its own form an equation is lowered as it
is, so that a form may use XLA's operation for some operands.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr, Params, Primitive, ShapedArray, Values, rewrite
from xlamini.core.caching.structure import hashable
from xlamini.core.flags.config import enable_checks, trace_context_key
from xlamini.core.program.equation_kind import derived
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.form_call import form_p
from xlamini.core.program.jaxpr_check import check_jaxpr
from xlamini.core.program.rewriting import rewritten_params
from xlamini.core.tracing.tracer import build

Operation = tuple[Primitive, tuple, tuple]
"""A primitive, the shapes and dtypes of operands and results, and the params: what an equation does."""

Key = tuple[str, Platform, Any]
"""Of what a kind of equation remembers: its form on a platform, under the flags of tracing."""


class SpecializedBody(NamedTuple):
    """The program of a form."""

    jaxpr: Jaxpr
    is_formula: bool


@rewrite
def specialize(jaxpr: Jaxpr, platforms: tuple[Platform, ...]) -> Jaxpr:
    """The program in the forms for these platforms; `jaxpr` itself if it has none."""
    return _in_forms(jaxpr, platforms, None)


def specialize_part(jaxpr: Jaxpr, platforms: tuple[Platform, ...], within: Operation | None = None) -> Jaxpr:
    """A program that a lowering rule made, or part of the form of `within`: it is no stage of the user's program."""
    result = _in_forms(jaxpr, platforms, within)
    if enable_checks.value:
        check_jaxpr(result)
    return result


def _in_forms(jaxpr: Jaxpr, platforms: tuple[Platform, ...], within: Operation | None) -> Jaxpr:
    keys = [("specialized", platform, trace_context_key()) for platform in platforms]
    eqns = [_specialized(eqn, keys, within) for eqn in jaxpr.eqns]
    return jaxpr if all(map(operator.is_, eqns, jaxpr.eqns)) else jaxpr.replace(eqns=eqns)


def _specialized(eqn: Equation, keys: Sequence[Key], within: Operation | None) -> Equation:
    primitive = eqn.primitive
    if primitive is form_p:
        return eqn
    if not primitive.is_pure:  # others have no jaxprs
        inner = specialize if within is None else functools.partial(_in_forms, within=within)
        platforms = tuple(platform for _, platform, _ in keys)
        eqn = _with_jaxprs(eqn, lambda jaxpr: inner(jaxpr, platforms))
    if type(primitive).form is Primitive.form or _is_within_itself(eqn, within):
        return eqn
    bodies = [_body(eqn, key) for key in keys]
    return _call(eqn, keys, bodies) if any(bodies) else eqn


def _call(eqn: Equation, keys: Sequence[Key], bodies: Sequence[SpecializedBody | None]) -> Equation:
    found = {key[1].name: body for key, body in zip(keys, bodies, strict=True) if body is not None}
    params: Params = {
        "of": eqn,
        "platforms": tuple(found),
        "jaxprs": tuple(body.jaxpr for body in found.values()),
        "is_formula": any(body.is_formula for body in found.values()),
    }
    return Equation(form_p, eqn.invars, eqn.outvars, params, eqn.effects, eqn.provenance, eqn.id)


def _with_jaxprs(eqn: Equation, fun: Callable[[Jaxpr], Jaxpr]) -> Equation:
    """The equation with `fun` applied to the jaxprs among its params; itself if none changes."""
    params = rewritten_params(eqn, fun)
    if params == eqn.params:
        return eqn
    return Equation(eqn.primitive, eqn.invars, eqn.outvars, params, eqn.effects, eqn.provenance, eqn.id, eqn.kind)


def _body(eqn: Equation, key: Key) -> SpecializedBody | None:
    """The program of the form of equations such as `eqn`, made once for its kind; None if it has no form."""
    kind = eqn.kind
    if kind is None or not kind.shared:
        return _traced(eqn, key[1])
    if key not in kind.derived:
        return derived.keep(kind, key, _traced(eqn, key[1]))
    return kind.derived[key]


def _traced(eqn: Equation, platform: Platform) -> SpecializedBody | None:
    primitive, avals = eqn.primitive, [a.aval for a in eqn.invars]
    form = primitive.form(platform, avals, [v.aval for v in eqn.outvars], eqn.params)
    if form is None:
        return None
    jaxpr = _trace(form, avals, primitive)
    return SpecializedBody(specialize_part(jaxpr, (platform,), _operation(eqn)), form.is_formula)


def _trace(form: Form, avals: Sequence[ShapedArray], primitive: Primitive) -> Jaxpr:
    """The program of a form for operands of these types; TypeError if it captures arrays."""

    def compute(*operands: Any) -> Values:
        out = form.compute(*operands)
        return out if primitive.multiple_results else [out]

    jaxpr, captured = build(compute, [ShapedArray(a.shape, a.dtype) for a in avals], primitive.name)
    if captured:
        raise TypeError(
            f"the form of {primitive} captured arrays; write them as iota or literals, or give them as operands"
        )
    return jaxpr


def _is_within_itself(eqn: Equation, within: Operation | None) -> bool:
    return within is not None and within[0] is eqn.primitive and within == _operation(eqn)


def _operation(eqn: Equation) -> Operation:
    params = [(name, hashable(value)) for name, value in eqn.params.items()]
    return eqn.primitive, tuple((a.aval.shape, a.aval.dtype) for a in (*eqn.invars, *eqn.outvars)), tuple(params)
