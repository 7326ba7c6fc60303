"""Transpose: turn a linear map around.

    transpose(jaxpr, linear, nonzero_ct)  ->  jaxpr of (known inputs, cotangents of outputs)
                                              -> cotangents of linear inputs

First the equations that do not depend on a linear input run forward; then the others, last one first, by their
transpose rules. Cotangents that meet at a variable are summed.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.jaxpr import Atom, Equation, Jaxpr, Var
from xlamini.core.provenance import derived
from xlamini.core.rewriting import rewrite
from xlamini.core.tangents import Linear, Zero, is_zero, tangent_aval
from xlamini.core.tracer import build
from xlamini.interpreters.environment import builder, read
from xlamini.interpreters.jvp import Mask, forced
from xlamini.primitives.tangent_ops import add_tangents, of_type


@rewrite
def transpose(
    jaxpr: Jaxpr, linear: Mask, nonzero_ct: Mask, force: Mask = ()
) -> tuple[Jaxpr, Mask]:
    """The transposed jaxpr, and which linear inputs have a cotangent that is not zero for sure.

    Linear inputs marked in `force` (which speaks of linear inputs alone) have one, of zeros if need be.
    """
    known = [v for v, is_lin in zip(jaxpr.invars, linear, strict=True) if not is_lin]
    wanted = [v for v, is_lin in zip(jaxpr.invars, linear, strict=True) if is_lin]
    nonzero_out: list[bool] = []

    def backward(*tracers: Any) -> list[Any]:
        env: dict[Var, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
        env.update(zip(known, tracers, strict=False))
        builder().environment = env
        pending = _run_forward(jaxpr, env)
        cts = _Cotangents()
        given = [v for v, nz in zip(jaxpr.outvars, nonzero_ct, strict=True) if nz]
        for var, ct in zip(given, tracers[len(known) :], strict=True):
            cts.add(var, ct)
        _pull_back(pending, env, cts)
        found = forced([of_type(v.aval, cts.take(v)) for v in wanted], force)
        nonzero_out.extend(not is_zero(ct) for ct in found)
        return [ct for ct in found if not is_zero(ct)]

    ct_avals = [v.aval for v, nz in zip(jaxpr.outvars, nonzero_ct, strict=True) if nz]
    result, _ = build(backward, [v.aval for v in known] + ct_avals, jaxpr.name)
    return result, tuple(nonzero_out)


class _Cotangents:
    """The cotangent gathered so far at each variable."""

    def __init__(self) -> None:
        self._found: dict[Var, Any] = {}

    def add(self, atom: Atom, ct: Any) -> None:
        if ct is not None and type(ct) is not Zero and type(atom) is Var:
            before = self._found.get(atom)
            self._found[atom] = ct if before is None else add_tangents(before, ct)

    def none_at(self, variables: Sequence[Var]) -> bool:
        return self._found.keys().isdisjoint(variables)

    def take(self, var: Var) -> Any:
        found = self._found.pop(var, None)
        return Zero(tangent_aval(var.aval)) if found is None else found


def _run_forward(jaxpr: Jaxpr, env: dict[Var, Any]) -> list[Equation]:
    """Evaluate what is known; the equations that are left, which are linear."""
    pending, target = [], builder()
    linear = {v for v in jaxpr.invars if v not in env}
    for eqn in jaxpr.eqns:
        if linear.isdisjoint(eqn.invars):
            env.update(zip(eqn.outvars, target.replay(eqn, read(env, eqn.invars)), strict=True))
        else:
            pending.append(eqn)
            linear.update(eqn.outvars)
    return pending


def _pull_back(pending: Sequence[Equation], env: dict[Var, Any], cts: _Cotangents) -> None:
    target = builder()
    for eqn in reversed(pending):
        if cts.none_at(eqn.outvars):
            continue
        out_cts = [cts.take(v) for v in eqn.outvars]
        operands = [_operand(env, a) for a in eqn.invars]
        target.provenance = derived("transpose", eqn)
        ct = out_cts if eqn.primitive.multiple_results else out_cts[0]
        for atom, in_ct in zip(eqn.invars, eqn.primitive.transpose(ct, *operands, **eqn.params), strict=True):
            cts.add(atom, in_ct)
        target.provenance = None


def _operand(env: dict[Var, Any], atom: Atom) -> Any:
    """What a transpose rule gets: the known value, or a placeholder for what is linear."""
    known = env.get(atom) if type(atom) is Var else atom
    return Linear(atom.aval) if known is None else known
