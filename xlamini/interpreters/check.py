"""Checked programs: a program that also returns its first error, as a value (error_values.py).

    check(jaxpr, errors)  ->  jaxpr of the same operands -> outputs, error

`errors` are the categories that are looked for: "nan", "inf", "div", "index", "user". An equation is copied unchanged
and its results are looked at, unless its primitive has jaxprs that are checked too, by its rule `checked`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr, Values, aval_of, is_differentiable, rewrite
from xlamini.core.jaxpr import Provenance, derived
from xlamini.core.tracer import build
from xlamini.interpreters.environment import bound, builder, read
from xlamini.interpreters.error_values import Part, bad_value, failed, merged
from xlamini.interpreters.roles import role_of

Errors = frozenset[str]


class Checked(NamedTuple):
    """A checked jaxpr, and how its last outputs make an error."""

    jaxpr: Jaxpr
    error: Part

    def parted(self, outs: Sequence[Any]) -> tuple[list[Any], Part]:
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


def push_check(jaxpr: Jaxpr, operands: Values, errors: Errors) -> tuple[list[Any], Part]:
    """The outputs, and the error of all equations together."""
    env, target, parts = bound(jaxpr, operands), builder(), []
    primals: dict[Provenance, Equation] = {}
    before, target.environment = target.environment, env
    for eqn in jaxpr.eqns:
        outs, part = _push(eqn, role_of(eqn, primals), read(env, eqn.invars), errors)
        parts.extend(part)
        env.update(zip(eqn.outvars, outs, strict=True))
    target.provenance = Provenance(None)
    error = merged(parts)
    target.provenance, target.environment = None, before
    return read(env, jaxpr.outvars), error


def _push(eqn: Equation, role: str, inputs: Values, errors: Errors) -> tuple[Sequence[Any], list[Part]]:
    primitive, target, provenance = eqn.primitive, builder(), derived("check", eqn)
    if primitive.written("checked") is not None:
        target.provenance = provenance
        outs, part = primitive.checked(errors, inputs, **eqn.params)
        target.provenance = None
        return outs, [part.of(eqn)]
    outs = target.replay(eqn, inputs)
    target.provenance = provenance
    parts = _looked_at(eqn, role, inputs, outs, errors)
    target.provenance = None
    return outs, parts


def _looked_at(eqn: Equation, role: str, inputs: Values, outs: Values, errors: Errors) -> list[Part]:
    found = [f for f in eqn.primitive.failures(inputs, outs, **eqn.params) if f.category in errors]
    parts = [failed(eqn, role, f) for f in found if aval_of(f.bad).size]
    if not eqn.primitive.makes_nan:
        return parts
    for x in outs:
        if is_differentiable(aval_of(x)) and aval_of(x).size:
            parts.extend(bad_value(eqn, role, x, inputs, c) for c in ("nan", "inf") if c in errors)
    return parts
