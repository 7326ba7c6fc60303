"""A builder that decides for each equation where it goes."""
from __future__ import annotations

from typing import Any

from xlamini.core.avals import Values
from xlamini.core.jaxpr import Equation, Jaxpr
from xlamini.core.tracer import Builder


class SelectiveBuilder(Builder):
    """Programs are inlined into it one equation at a time, through `emit`, which says where the equation goes."""

    __slots__ = ()

    def replay(self, eqn: Equation, operands: Values) -> list[Any]:
        out = self.emit(eqn.primitive, operands, eqn.params)
        return list(out) if eqn.primitive.multiple_results else [out]

    def inline(self, jaxpr: Jaxpr, operands: Values, provenance: Any = None) -> list[Any]:
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*jaxpr.consts, *operands], strict=True))
        for eqn in jaxpr.eqns:
            outs = self.replay(eqn, [env.get(a, a) for a in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
        return [env.get(a, a) for a in jaxpr.outvars]
