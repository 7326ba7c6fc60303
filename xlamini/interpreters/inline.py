"""Inlining: each call is replaced with the equations of the called jaxpr."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core import Atom, CallLike, Equation, Jaxpr, Var, rewrite
from xlamini.core.program.jaxpr import Provenance


@rewrite
def inline_calls(jaxpr: Jaxpr, call: CallLike) -> Jaxpr:
    """The program with all calls of the primitive `call` inlined; their names become scopes of the equations."""
    if not any(eqn.primitive is call for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Equation] = []
    env: dict[Var, Atom] = {}
    _inline(jaxpr, call, env, eqns, ())
    return jaxpr.replace(eqns=eqns, outvars=_read(env, jaxpr.outvars))


def _inline(
    jaxpr: Jaxpr, call: CallLike, env: dict[Var, Atom], eqns: list[Equation], scope: tuple[str, ...]
) -> None:
    for eqn in jaxpr.eqns:
        invars = _read(env, eqn.invars)
        if eqn.primitive is not call:
            eqns.append(eqn.copied(invars, len(eqns), _within(scope, eqn.provenance)))
            env.update(zip(eqn.outvars, eqns[-1].outvars, strict=True))
            continue
        body: Jaxpr = eqn.params[call.called]
        inner: dict[Var, Atom] = dict(zip(body.invars, invars, strict=True))
        _inline(body, call, inner, eqns, (*scope, *eqn.provenance.scope, body.name))
        env.update(zip(eqn.outvars, _read(inner, body.outvars), strict=True))


def _read(env: dict[Var, Atom], atoms: Sequence[Atom]) -> list[Atom]:
    return [env.get(a, a) if type(a) is Var else a for a in atoms]


def _within(scope: tuple[str, ...], inner: Provenance) -> Provenance:
    return Provenance(inner.source, (*scope, *inner.scope), inner.rewrite, inner.origin) if scope else inner
