"""Forward mode: a program and, beside each value, its tangent.

    jvp(jaxpr, nonzero)  ->  jaxpr of (primals, tangents) -> (outputs, tangents of outputs)

Only inputs marked in `nonzero` have a tangent; outputs whose tangent is zero for sure have none either.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlamini.core.jaxpr import Jaxpr, Var
from xlamini.core.primitive import Primitive
from xlamini.core.provenance import derived
from xlamini.core.rewriting import rewrite
from xlamini.core.tangents import Zero, is_zero, tangent_aval
from xlamini.core.tracer import build
from xlamini.interpreters.environment import bound, builder, read
from xlamini.primitives.tangent_ops import instantiated

Mask = tuple[bool, ...]


@rewrite
def jvp(jaxpr: Jaxpr, nonzero: Mask, force: Mask = ()) -> tuple[Jaxpr, Mask]:
    """The jaxpr of values and tangents, and which outputs have a tangent.

    Outputs marked in `force` have one, of zeros if need be.
    """
    nonzero_out: list[bool] = []

    def values_and_tangents(*tracers: Any) -> list[Any]:
        primals, tangents = tracers[: len(nonzero)], tracers[len(nonzero) :]
        outs, found = push_forward(jaxpr, primals, spread(jaxpr, nonzero, tangents), Primitive.jvp)
        out_tangents = forced(found, force)
        nonzero_out.extend(not is_zero(t) for t in out_tangents)
        return [*outs, *(t for t in out_tangents if not is_zero(t))]

    avals = jaxpr.in_avals + [tangent_aval(a) for a, nz in zip(jaxpr.in_avals, nonzero, strict=True) if nz]
    result, _ = build(values_and_tangents, avals, jaxpr.name)
    return result, tuple(nonzero_out)


def push_forward(
    jaxpr: Jaxpr, primals: Sequence[Any], tangents: Sequence[Any], rule: Callable[..., Any]
) -> tuple[list[Any], list[Any]]:
    """Outputs and their tangents, by the rule `jvp` or `linearize` of every equation that a tangent reaches."""
    env, target = bound(jaxpr, primals), builder()
    tangent_env: dict[Any, Any] = {v: t for v, t in zip(jaxpr.invars, tangents, strict=True) if type(t) is not Zero}
    target.environment = env
    name, reached = rule.__name__, tangent_env.keys()
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        if reached.isdisjoint(eqn.invars):
            env.update(zip(eqn.outvars, target.replay(eqn, inputs), strict=True))
            continue
        in_tangents = [tangent_env[a] if a in reached else Zero(tangent_aval(a.aval)) for a in eqn.invars]
        target.provenance = derived(name, eqn)
        outs, out_tangents = getattr(eqn.primitive, name)(inputs, in_tangents, **eqn.params)
        if not eqn.primitive.multiple_results:
            outs, out_tangents = (outs,), (out_tangents,)
        env.update(zip(eqn.outvars, outs, strict=True))
        for var, tangent in zip(eqn.outvars, out_tangents, strict=True):
            if type(tangent) is not Zero:
                tangent_env[var] = tangent
    target.provenance = None
    return read(env, jaxpr.outvars), [_tangent(tangent_env, a) for a in jaxpr.outvars]


def _tangent(tangent_env: dict[Var, Any], atom: Any) -> Any:
    found = tangent_env.get(atom)
    return Zero(tangent_aval(atom.aval)) if found is None else found


def forced(tangents: Sequence[Any], force: Mask) -> list[Any]:
    """The tangents, those marked as arrays even where they are symbolic zeros."""
    if not force:
        return list(tangents)
    return [instantiated(t) if wanted else t for t, wanted in zip(tangents, force, strict=True)]


def spread(jaxpr: Jaxpr, nonzero: Iterable[bool], tangents: Iterable[Any]) -> list[Any]:
    """A tangent for every input: the given ones where `nonzero`, symbolic zeros elsewhere."""
    given = iter(tangents)
    return [
        next(given) if nz else Zero(tangent_aval(a))
        for a, nz in zip(jaxpr.in_avals, nonzero, strict=True)
    ]
