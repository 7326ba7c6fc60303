"""Primitives that are linear in their only operand: their base, and what they return where there is nothing to do."""
from __future__ import annotations

from typing import Any

from xlamini.core import Cost, Primitive, ShapedArray, Values
from xlamini.core.dtypes import float0
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.runtime import ArrayImpl, device_put_value
from xlamini.runtime.arrays.to_device import HOST_VALUES


class LinearUnary(Primitive):
    """A primitive that is linear in its only operand: its tangent goes through the same operation."""

    sharding: Sharding = Sharding(linear=JOINTLY)
    checks = NO_NEW_NAN

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, self.bind(*tangents, **params)

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        return super().cost(*avals, **params)._replace(flops=0)


def unchanged(x: Any) -> Any:
    """What an operation that changes nothing returns: an ndarray or a number as an Array, and anything else itself.

    A tangent of dtype float0 is an ndarray always.
    """
    if type(x) is ArrayImpl or not isinstance(x, HOST_VALUES):
        return x
    return x if getattr(x, "dtype", None) == float0 else device_put_value(x)
