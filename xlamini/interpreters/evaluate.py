"""Evaluation of a jaxpr: its equations are copied into the active builder, or run one by one if there is none."""
from __future__ import annotations

from typing import Any

from xlamini.core import Jaxpr, Values
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import TangentBuilder
from xlamini.interpreters.bindings import bound, read, write


def evaluate(jaxpr: Jaxpr, operands: Values) -> list[Any]:
    """The outputs of `jaxpr` (without constvars) for these operands."""
    builder = state.builder
    if builder is not None and type(builder) is not TangentBuilder:
        return builder.inline(jaxpr, operands)
    env = bound(jaxpr, operands)
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        if builder is not None:
            env.update(zip(eqn.outvars, builder.replay(eqn, inputs), strict=True))
        else:
            write(env, eqn, eqn.primitive.bind(*inputs, **eqn.params))
    return read(env, jaxpr.outvars)
