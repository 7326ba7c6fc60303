"""The environment of an interpreter: the values of variables, read and written by each loop over equations."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Atom, Builder, Equation, Jaxpr, Values, Var
from xlamini.core.tracing.state import state


def bound(jaxpr: Jaxpr, values: Values) -> dict[Var, Any]:
    """The initial environment of a jaxpr: its inputs and its captured constants."""
    env = dict(zip(jaxpr.invars, values, strict=True))
    if jaxpr.constvars:
        env.update(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    return env


def noted(jaxpr: Jaxpr, notes: Sequence[Any]) -> dict[Var, Any]:
    """An environment of notes on the inputs, such as their batch dimensions."""
    return dict(zip(jaxpr.invars, notes, strict=True))


def read(env: dict[Var, Any], atoms: Sequence[Atom]) -> list[Any]:
    """The values of atoms; a literal stands for itself."""
    return [env[a] if type(a) is Var else a for a in atoms]


def write(env: dict[Var, Any], eqn: Equation, outs: Any) -> None:
    """Bind an equation's outputs to what its primitive returned."""
    if eqn.primitive.multiple_results:
        env.update(zip(eqn.outvars, outs, strict=True))
    else:
        env[eqn.outvars[0]] = outs


def builder() -> Builder:
    """The builder that a rewrite emits equations to."""
    assert state.builder is not None
    return state.builder
