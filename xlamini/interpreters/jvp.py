"""Forward-mode differentiation (JVP): each value is computed together with its tangent.

    jvp(jaxpr, nonzero)  ->  jaxpr of (primals, tangents) -> (outputs, tangents of outputs)

Only inputs marked in `nonzero` have a tangent; outputs with a symbolic zero tangent have none.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlamini.core import (
    Builder,
    Equation,
    Jaxpr,
    Values,
    Var,
    Zero,
    aval_of,
    is_differentiable,
    is_zero,
    rewrite,
    tangent_aval,
)
from xlamini.core.program.bindable import further
from xlamini.core.program.equation_kind import as_jaxpr
from xlamini.core.program.jaxpr import derived
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, read
from xlamini.interpreters.rule_cache import rewrite_once_per_kind
from xlamini.primitives import instantiated

Mask = tuple[bool, ...]


@rewrite
def jvp(jaxpr: Jaxpr, nonzero: Mask, force: Mask = ()) -> tuple[Jaxpr, Mask]:
    """The jaxpr of primals and tangents, and a mask of the outputs that have a tangent.

    Outputs marked in `force` have one in any case, instantiated as zeros if necessary.
    """
    nonzero_out: list[bool] = []

    def values_and_tangents(*tracers: Any) -> list[Any]:
        primals, tangents = tracers[: len(nonzero)], tracers[len(nonzero) :]
        outs, found = push_forward(jaxpr, primals, with_symbolic_zeros(jaxpr, nonzero, tangents), "jvp", _push_equation)
        out_tangents = instantiate_marked(found, force)
        nonzero_out.extend(not is_zero(t) for t in out_tangents)
        return [*outs, *(t for t in out_tangents if not is_zero(t))]

    avals = jaxpr.in_avals + [tangent_aval(a) for a, nz in zip(jaxpr.in_avals, nonzero, strict=True) if nz]
    result, _ = build(values_and_tangents, avals, jaxpr.name)
    return result, tuple(nonzero_out)


Treat = Callable[[Equation, list[Any], list[Any], list[Any]], tuple[Sequence[Any], Sequence[Any]] | None]
"""A function of an equation, its operands, their non-zero tangents, and the notes on operands (see rule_cache.py) that
returns the outputs and their tangents; None if the rule has to run in place."""


def push_forward(
    jaxpr: Jaxpr, primals: Values, tangents: Values, rule: str, treat: Treat
) -> tuple[list[Any], list[Any]]:
    """The outputs and their tangents: each equation with a tangent goes to `treat`, or to its rule."""
    env, target = bound(jaxpr, primals), builder()
    tangent_env: dict[Any, Any] = {v: t for v, t in zip(jaxpr.invars, tangents, strict=True) if type(t) is not Zero}
    target.environment = env
    for eqn in jaxpr.eqns:
        known, given, notes = _notes(eqn, env, tangent_env)
        if not given:
            env.update(zip(eqn.outvars, target.replay(eqn, read(env, eqn.invars)), strict=True))
            continue
        treated = None if _reads_twice(eqn) else treat(eqn, known, given, notes)
        outs, out_tangents = treated or _by_rule(target, eqn, env, tangent_env, rule)
        for var, out, tangent in zip(eqn.outvars, outs, out_tangents, strict=False):  # after outs may come residuals
            env[var] = out
            if tangent is not None and type(tangent) is not Zero:
                tangent_env[var] = tangent
    return read(env, jaxpr.outvars), [_tangent(tangent_env, a) for a in jaxpr.outvars]


def _reads_twice(eqn: Equation) -> bool:
    """Whether both operands are one value, as those of a square, which has a simpler derivative than its kind."""
    operands = eqn.invars
    return len(operands) == 2 and operands[0] is operands[1]


def _notes(eqn: Equation, env: dict[Any, Any], tangent_env: dict[Any, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The operands that are variables, their non-zero tangents, and the notes on operands (see rule_cache.py)."""
    known, given, notes = [], [], []
    for a in eqn.invars:
        if type(a) is not Var:
            notes.append(a)
            continue
        x, tangent = env[a], tangent_env.get(a)
        known.append(x)
        if tangent is None:
            notes.append(False if aval_of(x) is a.aval else x.aval)
        else:
            given.append(tangent)
            notes.append(True if tangent.aval is x.aval is a.aval else x.aval)
    return known, given, notes


def _by_rule(target: Builder, eqn: Equation, env: Any, tangent_env: Any, rule: str) -> Any:
    zeros_too = [tangent_env[a] if a in tangent_env else Zero(tangent_aval(a.aval)) for a in eqn.invars]
    target.provenance = derived(rule, eqn)
    rule_of = further(eqn.primitive, rule) or eqn.primitive.jvp
    made = rule_of(read(env, eqn.invars), zeros_too, **eqn.params)
    target.provenance = None
    return made if eqn.primitive.multiple_results else [[x] for x in made]


def results_with_tangents(eqn: Equation) -> Mask:
    """A mask of the results that have a tangent where all differentiable operands have one.

    A rule that raises, as a `custom_vjp` does in forward mode, answers for none of them, so that all are marked.
    """
    notes = [is_differentiable(a.aval) if type(a) is Var else a for a in eqn.invars]
    try:
        once = rewrite_once_per_kind(jvp, eqn, notes) or jvp(as_jaxpr(eqn), tuple(n for n in notes if type(n) is bool))
    except Exception:
        return (True,) * len(eqn.outvars)
    return once[1]


def _push_equation(eqn: Equation, known: list[Any], given: list[Any], notes: list[Any]) -> Any:
    once = rewrite_once_per_kind(jvp, eqn, notes)
    if once is None:
        return None
    program, nonzero_out = once
    results = builder().inline(program, known + given, derived("jvp", eqn))
    return results[: len(nonzero_out)], scatter_where(nonzero_out, results[len(nonzero_out) :])


def scatter_where(mask: Sequence[bool], values: Values) -> Values:
    """The values scattered to the positions where `mask` is True; None at the others."""
    if len(values) == len(mask):
        return values
    given = iter(values)
    return [next(given) if wanted else None for wanted in mask]


def _tangent(tangent_env: dict[Var, Any], atom: Any) -> Any:
    found = tangent_env.get(atom)
    return Zero(tangent_aval(atom.aval)) if found is None else found


def instantiate_marked(tangents: Values, force: Mask) -> list[Any]:
    """The tangents, with marked symbolic zeros instantiated as arrays."""
    if not force:
        return list(tangents)
    return [instantiated(t) if wanted else t for t, wanted in zip(tangents, force, strict=True)]


def with_symbolic_zeros(jaxpr: Jaxpr, nonzero: Iterable[bool], tangents: Iterable[Any]) -> list[Any]:
    """A tangent for each input: the given ones where `nonzero`, symbolic zeros at the others."""
    given = iter(tangents)
    return [
        next(given) if nz else Zero(tangent_aval(a))
        for a, nz in zip(jaxpr.in_avals, nonzero, strict=True)
    ]
