"""The base of primitives that are linear in their only operand."""
from __future__ import annotations

from typing import Any

from xlamini.core import Cost, Primitive, ShapedArray, Values
from xlamini.core.sharding.partial_sums import JOINTLY


class LinearUnary(Primitive):
    """A primitive that is linear in its only operand: its tangent goes through the same operation."""

    linear = JOINTLY

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, self.bind(*tangents, **params)

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        return super().cost(*avals, **params)._replace(flops=0)
