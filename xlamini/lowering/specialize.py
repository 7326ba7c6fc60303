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
from collections.abc import Sequence
from typing import Any, cast

from xlamini.core import CallLike, Equation, Jaxpr, Params, Primitive, ShapedArray, Values, rewrite
from xlamini.core.caching.structure import hashable
from xlamini.core.errors import InconclusiveDimensionOperation
from xlamini.core.flags.config import enable_checks, trace_context_key
from xlamini.core.program.equation_kind import derived
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.form_call import form_p
from xlamini.core.program.jaxpr import Provenance, rewrites
from xlamini.core.program.jaxpr_check import check_jaxpr
from xlamini.core.program.rewriting import placed, with_jaxprs
from xlamini.core.tracing.tracer import build

Operation = tuple[Primitive, tuple[Any, ...], tuple[Any, ...]]
"""A primitive, the shapes and dtypes of operands and results, and the params: what an equation does."""

Key = tuple[str, tuple[Platform, ...], Any]
"""Of what a kind of equation remembers: its forms on platforms, under the flags of tracing."""


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
    key = "specialized", platforms, trace_context_key()
    eqns = [_specialized(eqn, key, within) for eqn in jaxpr.eqns]
    return jaxpr if all(map(operator.is_, eqns, jaxpr.eqns)) else jaxpr.replace(eqns=eqns)


def _specialized(eqn: Equation, key: Key, within: Operation | None) -> Equation:
    primitive = eqn.primitive
    if primitive is form_p:
        return eqn
    if not primitive.is_pure:  # others have no jaxprs
        inner = specialize if within is None else functools.partial(_in_forms, within=within)
        eqn = with_jaxprs(eqn, lambda jaxpr: inner(jaxpr, _platforms_in(eqn, key[1])))
    if type(primitive).form is Primitive.form or (within is not None and within == _operation(eqn)):
        return eqn
    forms = _forms(eqn, key)
    if forms is None:
        return eqn
    params = {"of": eqn, **forms}
    return Equation(form_p, eqn.invars, eqn.outvars, params, eqn.effects, eqn.provenance, eqn.id)


def _platforms_in(eqn: Equation, platforms: tuple[Platform, ...]) -> tuple[Platform, ...]:
    """The platforms of the jaxprs among an equation's params."""
    is_manual = eqn.primitive.sharding.is_manual
    if is_manual is None or not is_manual(eqn.params):
        return platforms
    return tuple(platform._replace(manual=True) for platform in platforms)


def _forms(eqn: Equation, key: Key) -> Params | None:
    """The params of the forms of equations such as `eqn`, made once for its kind; None if no platform has one."""
    kind = eqn.kind
    if isinstance(eqn.primitive, CallLike):
        return _forms_of_call(eqn, key)
    if kind is None or not kind.shared:
        return _traced(eqn, key[1])
    if key not in kind.derived:
        return derived.keep(kind, key, _traced(eqn, key[1]))
    return kind.derived[key]


def _forms_of_call(eqn: Equation, key: Key) -> Params | None:
    """The same for a call: memoised on the jaxpr that it calls, which calls of one operation share."""
    called, kept = eqn.params[cast(CallLike, eqn.primitive).called], (key, _operation(eqn))
    found = called.memo.get(kept)
    return rewrites.keep(called, kept, _traced(eqn, key[1])) if found is None else found


def _traced(eqn: Equation, platforms: tuple[Platform, ...]) -> Params | None:
    primitive, avals, outs = eqn.primitive, [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    found = {}
    for platform in platforms:
        try:
            form = primitive.form(platform, avals, outs, eqn.params)
            if form is not None:
                jaxpr = specialize_part(_trace(form, avals, primitive), (platform,), _operation(eqn))
                found[platform] = jaxpr, form.is_formula
        except InconclusiveDimensionOperation:  # the form is for some sizes, and those of `eqn` are symbolic
            if primitive.written("lower") is type(primitive).form:
                raise
    if not found:
        return None
    jaxprs, formulas = zip(*found.values(), strict=True)
    return {
        "platforms": tuple(platform.name for platform in found),
        "jaxprs": jaxprs,
        "is_formula": any(formulas),
    }


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
    return placed(jaxpr, Provenance(None))  # it is shared by equations of several lines


def _operation(eqn: Equation) -> Operation:
    params = [(name, hashable(value)) for name, value in eqn.params.items()]
    return eqn.primitive, tuple((a.aval.shape, a.aval.dtype) for a in (*eqn.invars, *eqn.outvars)), tuple(params)
