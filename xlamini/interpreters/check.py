"""Checked programs: a program that also returns its first error, as a value (error_values.py).

    check(jaxpr, errors)  ->  jaxpr of the same operands -> outputs, error

`errors` are the categories that are looked for: "nan", "inf", "div", "index", "user". With SOMEWHERE among them, a
value is not looked at if a NaN in it makes a later one NaN, which is. That tells as well whether there is a NaN, and
costs little, but not where the first one is. An equation is copied unchanged
and its results are looked at, unless its primitive has jaxprs that are checked too, by its rule `checked`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr, Values, Var, aval_of, is_differentiable, rewrite
from xlamini.core.program.bindable import further
from xlamini.core.program.jaxpr import Provenance, derived
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, read
from xlamini.interpreters.error_values import ErrorPart, Trail
from xlamini.interpreters.roles import role_of

Errors = frozenset[str]
SOMEWHERE = "somewhere"


class Checked(NamedTuple):
    """A checked jaxpr, and how its last outputs make an error."""

    jaxpr: Jaxpr
    error: ErrorPart

    def split_outputs(self, outs: Sequence[Any]) -> tuple[list[Any], ErrorPart]:
        """The outputs and the error, of a run."""
        count = len(outs) - len(self.error.values)
        return list(outs[:count]), self.error.rebuilt(outs[count:])


@rewrite
def check(jaxpr: Jaxpr, errors: Errors) -> Checked:
    """The checked program; it has no further outputs if nothing in it can fail."""
    error: Any = None

    def checked(*operands: Any) -> list[Any]:
        nonlocal error
        outs, error = push_check(jaxpr, operands, errors)
        return [*outs, *error.values]

    result, _ = build(checked, jaxpr.in_avals, jaxpr.name)
    return Checked(result, error.of_types(result.out_avals[len(jaxpr.outvars) :]))


def push_check(jaxpr: Jaxpr, operands: Values, errors: Errors) -> tuple[list[Any], ErrorPart]:
    """The outputs, and the error of all equations together."""
    env, target, trail = bound(jaxpr, operands), builder(), Trail()
    primals: dict[Provenance, Equation] = {}
    seen_later = values_seen_later(jaxpr) if SOMEWHERE in errors else frozenset()
    before, target.environment = target.environment, env
    for eqn in jaxpr.eqns:
        inputs, role = read(env, eqn.invars), role_of(eqn, primals)
        wanted = errors if seen_later.isdisjoint(eqn.outvars) else errors - {"nan"}
        outs = _push(eqn, role, inputs, wanted if not eqn.primitive.higher_order else errors, trail)
        env.update(zip(eqn.outvars, outs, strict=True))
    target.provenance = Provenance(None)
    error = trail.error()
    target.provenance, target.environment = None, before
    return read(env, jaxpr.outvars), error


def values_seen_later(jaxpr: Jaxpr) -> frozenset[Var]:
    """The values whose NaN make another value NaN that is looked at, or is seen later itself."""
    seen: set[Var] = set()
    for eqn in reversed(jaxpr.eqns):
        primitive = eqn.primitive
        is_seen = primitive.checks.makes_nan or not seen.isdisjoint(eqn.outvars)
        if primitive.checks.keeps_nan and is_seen and all(map(_has_floats, eqn.outvars)):
            seen.update(a for a in eqn.invars if type(a) is Var)
    return frozenset(seen)


def _has_floats(x: Any) -> bool:
    aval = aval_of(x)
    return is_differentiable(aval) and aval.size > 0


def _push(eqn: Equation, role: str, inputs: Values, errors: Errors, trail: Trail) -> Sequence[Any]:
    primitive, target, provenance = eqn.primitive, builder(), derived("check", eqn)
    rule = further(primitive, "checked")
    if rule is None:
        outs = target.replay(eqn, inputs)
        target.provenance = provenance
        _look_at(eqn, role, inputs, outs, errors, trail)
    else:
        target.provenance = provenance
        outs, part = rule(errors, inputs, **eqn.params)
        trail.add(part.of(eqn))
    target.provenance = None
    return outs


def _look_at(eqn: Equation, role: str, inputs: Values, outs: Values, errors: Errors, trail: Trail) -> None:
    for failure in eqn.primitive.checks.failures(inputs, outs, **eqn.params):
        if failure.category in errors and aval_of(failure.bad).size:
            trail.fail_at(eqn, role, failure)
    for x in outs if eqn.primitive.checks.makes_nan else ():
        for category in ("nan", "inf"):
            if category in errors and _has_floats(x):
                trail.look_at(eqn, role, x, inputs, category)
