"""Transposition of linear programs: from output cotangents to input cotangents.

    transpose(jaxpr, linear, nonzero_ct)  ->  jaxpr of (known inputs, cotangents of outputs)
                                              -> cotangents of linear inputs

First the equations that do not depend on a linear input are evaluated; then the others, in reverse order, by their
transpose rules. Cotangents of a variable with several uses are summed.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from xlamini.core import (
    Atom,
    Builder,
    Equation,
    Jaxpr,
    ShapedArray,
    Values,
    Var,
    Zero,
    aval_of,
    cotangent_aval,
    is_zero,
    rewrite,
)
from xlamini.core.errors import MissingRule
from xlamini.core.program.bindable import further
from xlamini.core.program.jaxpr import derived
from xlamini.core.program.tangents import Linear, dual_aval
from xlamini.core.tracing.concretization import UnknownValue, values_together
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import builder, read
from xlamini.interpreters.jvp import Mask, instantiate_marked, scatter_where
from xlamini.interpreters.rule_cache import rewrite_once_per_kind
from xlamini.primitives import placed_as
from xlamini.primitives.base.tangent_ops import add_tangents, of_type


@rewrite
def transpose(
    jaxpr: Jaxpr, linear: Mask, nonzero_ct: Mask, force: Mask = ()
) -> tuple[Jaxpr, Mask]:
    """The transposed jaxpr, and a mask of the linear inputs whose cotangent is not a symbolic zero.

    `force` marks linear inputs that have one in any case, instantiated as zeros if necessary.
    """
    return transpose_at(None, jaxpr, linear, nonzero_ct, force)


WRITTEN = "the cells that transpose rules write"
"""The key in the memo of a builder; see `transpose_at`."""


def transpose_at(
    values: Sequence[Any] | None,
    jaxpr: Jaxpr,
    linear: Mask,
    nonzero_ct: Mask,
    force: Mask = (),
    written: list[Any] | None = None,
) -> tuple[Jaxpr, Mask]:
    """Like `transpose`, where the Python function behind a rule may read `values`, those of the known inputs and of the
    cotangents; the result holds for other values only if no function has read them.

    With `written`, a rule may write refs: their cells are added to this list, and their final values to the outputs.
    """
    known = [v for v, is_lin in zip(jaxpr.invars, linear, strict=True) if not is_lin]
    wanted = [v for v, is_lin in zip(jaxpr.invars, linear, strict=True) if is_lin]
    nonzero_out: list[bool] = []

    def backward(*tracers: Any) -> list[Any]:
        env: dict[Var, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
        env.update(zip(known, tracers, strict=False))
        builder().environment = env
        if written is not None:
            builder().memo[WRITTEN] = {}
        pending = _run_forward(jaxpr, env)
        cts: Cotangents = {}
        given = [v for v, nz in zip(jaxpr.outvars, nonzero_ct, strict=True) if nz]
        _accumulate(cts, given, tracers[len(known) :])
        _pull_back(pending, env, cts)
        found = instantiate_marked([of_type(v.aval, _or_zero(v, cts.get(v))) for v in wanted], force)
        nonzero_out.extend(not is_zero(ct) for ct in found)
        final = builder().memo.get(WRITTEN, {})
        if written is not None:
            written.extend(final)
        return [*(ct for ct in found if not is_zero(ct)), *final.values()]

    ct_avals = [dual_aval(v.aval) for v, nz in zip(jaxpr.outvars, nonzero_ct, strict=True) if nz]
    result, _ = build(backward, [v.aval for v in known] + ct_avals, jaxpr.name, values=values)
    return result, tuple(nonzero_out)


Cotangents = dict[Var, Any]
"""The cotangent accumulated so far for each variable; zero cotangents are absent."""


def _accumulate(cts: Cotangents, atoms: Sequence[Atom], found: Sequence[Any]) -> None:
    for atom, ct in zip(atoms, found, strict=True):
        if ct is not None and type(ct) is not Zero and type(atom) is Var:
            before = cts.get(atom)
            cts[atom] = ct if before is None else add_tangents(before, ct)


def _or_zero(var: Var, ct: Any) -> Any:
    return Zero(cotangent_aval(var.aval)) if ct is None else ct


def _run_forward(jaxpr: Jaxpr, env: dict[Var, Any]) -> list[Equation]:
    """Evaluate the equations with known operands; returns the others, which are linear."""
    pending, target = [], builder()
    linear = {v for v in jaxpr.invars if v not in env}
    for eqn in jaxpr.eqns:
        if linear.isdisjoint(eqn.invars):
            env.update(zip(eqn.outvars, target.replay(eqn, read(env, eqn.invars)), strict=True))
        else:
            pending.append(eqn)
            linear.update(eqn.outvars)
    return pending


def reads_cotangents(eqn: Equation) -> bool:
    """Whether the transpose rule takes cotangents as arrays, where they are known."""
    rule = further(eqn.primitive, "reads_cotangents")
    return rule is not None and rule(eqn.params)


def _pull_back(pending: Sequence[Equation], env: dict[Var, Any], cts: Cotangents) -> None:
    target = builder()
    for eqn in reversed(pending):
        if target.known and reads_cotangents(eqn):
            _evaluate(cts)
        given = [cts.pop(v, None) for v in eqn.outvars]
        if all(ct is None for ct in given):
            continue
        target.provenance = derived("transpose", eqn)
        try:
            found = _pull_back_cached(target, eqn, env, given)
            if found is None:
                known = [env.get(a) if type(a) is Var else a for a in eqn.invars]
                found = _by_rule(eqn, known, list(map(_or_zero, eqn.outvars, given)))
        except MissingRule as error:
            raise _not_linear(eqn, error) from None
        _accumulate(cts, eqn.invars, found)
        target.provenance = None


def _evaluate(cts: Cotangents) -> None:
    """Run the backward pass up to here, so that the cotangents are arrays, which the rest of it takes as inputs."""
    with suppress(UnknownValue):  # an effect is to be had first
        cts.update(zip(cts, values_together(list(cts.values())), strict=True))


def _not_linear(eqn: Equation, error: MissingRule) -> MissingRule:
    """The error with the line of the equation: most often a rule of custom_jvp that is not linear in its tangents."""
    source = eqn.provenance.source if eqn.provenance else None
    if source is None or "linear" in str(error):
        return error
    return MissingRule(f"{source}: {eqn.primitive.name} is not linear in a tangent, as reverse mode needs it; {error}")


def _pull_back_cached(target: Builder, eqn: Equation, env: dict[Var, Any], cts: Values) -> Sequence[Any] | None:
    """The cotangents of an equation's operands by the cached rule; None if the rule has to run in place."""
    operands, notes = [], []  # the known operands; the notes on all operands: whether linear (see rule_cache.py)
    for a in eqn.invars:
        if type(a) is not Var:
            notes.append(a)
        elif (known := env.get(a)) is None:
            notes.append(True)
        else:
            operands.append(known)
            aval = aval_of(known)
            notes.append(False if aval is a.aval else aval)
    ct_avals = tuple([ct if ct is None else aval_of(ct) for ct in cts])
    once = rewrite_once_per_kind(_transpose_equation, eqn, notes, ct_avals)
    if once is None:
        return None
    program, nonzero = once
    operands.extend([ct for ct in cts if ct is not None])
    return scatter_where(nonzero, target.inline(program, operands, target.provenance))


@rewrite
def _transpose_equation(jaxpr: Jaxpr, cts: Sequence[ShapedArray | None], linear: Mask) -> tuple[Jaxpr, Mask]:
    """The transposed program of one equation on (known operands, cotangents), and a mask of operands with a cotangent.

    `cts` are the types of the cotangents, None for zeros.
    """
    (eqn,) = jaxpr.eqns
    nonzero: list[bool] = []

    def backward(*tracers: Any) -> list[Any]:
        given = iter(tracers)
        env = {v: next(given) for v, is_lin in zip(jaxpr.invars, linear, strict=True) if not is_lin}
        known = [env.get(a) if type(a) is Var else a for a in eqn.invars]
        builder().provenance = derived("transpose", eqn)
        pairs = zip(eqn.outvars, cts, strict=True)
        found = _by_rule(eqn, known, [Zero(cotangent_aval(v.aval)) if ct is None else next(given) for v, ct in pairs])
        nonzero.extend(ct is not None and type(ct) is not Zero for ct in found)
        return [ct for ct in found if ct is not None and type(ct) is not Zero]

    known = [v.aval for v, is_lin in zip(jaxpr.invars, linear, strict=True) if not is_lin]
    return build(backward, [*known, *(ct for ct in cts if ct is not None)], jaxpr.name)[0], tuple(nonzero)


def _by_rule(eqn: Equation, known: Sequence[Any], cts: Values) -> Values:
    """The operands' cotangents by the transpose rule, which gets a placeholder in place of each linear operand."""
    operands = [Linear(a.aval) if x is None else x for a, x in zip(eqn.invars, known, strict=True)]
    ct = cts if eqn.primitive.multiple_results else cts[0]
    found = eqn.primitive.transpose(ct, *operands, **eqn.params)
    return [_as_operand(c, a) for c, a in zip(found, eqn.invars, strict=True)]


def _as_operand(ct: Any, atom: Atom) -> Any:
    """A cotangent with the sharding that its operand implies, and in its memory."""
    return ct if ct is None or type(ct) is Zero else placed_as(ct, dual_aval(atom.aval))
