"""unfused: a part of a formulation that XLA computes by itself; only in lowered programs of the CPU.

XLA's CPU backend fuses all it can, also what it then computes again for each index at which it is read; it drops
optimization barriers before it fuses. What stays apart is a function that it must not inline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Jaxpr, Primitive, ShapedArray, aval_of
from xlamini.core.tracer import build


def unfused(fun: Callable[..., Any], *operands: Any) -> Any:
    """The array `fun(*operands)`, fused neither with what gives the operands nor with what reads the result."""
    avals = [ShapedArray(a.shape, a.dtype) for a in map(aval_of, operands)]
    jaxpr, captured = build(lambda *values: [fun(*values)], avals)
    if captured:
        raise TypeError("an unfused part captured arrays; give them as operands, or write them as literals")
    return unfused_p.bind(*operands, jaxpr=jaxpr)


class Unfused(Primitive):
    name = "unfused"
    lacks = dict.fromkeys(("jvp", "batch"), "only in lowered programs of the CPU")

    def shape_rule(self, *avals: ShapedArray, jaxpr: Jaxpr) -> ShapedArray:
        return jaxpr.out_avals[0]

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr) -> Any:
        return ctx.part(jaxpr, operands, self.name, noinline=True)[0]


unfused_p = Unfused()
