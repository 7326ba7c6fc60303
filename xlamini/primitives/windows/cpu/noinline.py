"""noinline: a part of a formulation that XLA computes by itself; only in lowered programs of the CPU.

XLA's CPU backend fuses all it can, also what it then computes again for each index at which it is read; it drops
optimization barriers before it fuses. What stays apart is a function that it must not inline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Avals, Jaxpr, Primitive, ShapedArray, aval_of
from xlamini.core.tracer import build


def noinline(fun: Callable[..., Any], *operands: Any) -> Any:
    """The array `fun(*operands)`, fused neither with what gives the operands nor with what reads the result."""
    return noinline_p.bind(*operands, jaxpr=traced_alone(fun, list(map(aval_of, operands))))


def traced_alone(fun: Callable[..., Any], avals: Avals) -> Jaxpr:
    """The program of a function with one result, for operands without weak types; TypeError if it captures arrays."""
    jaxpr, captured = build(lambda *values: [fun(*values)], [ShapedArray(a.shape, a.dtype) for a in avals])
    if captured:
        raise TypeError(f"{fun} captured arrays; give them as operands, or write them as literals")
    return jaxpr


class NoInline(Primitive):
    name = "noinline"
    lacks = dict.fromkeys(("jvp", "batch"), "only in lowered programs of the CPU")

    def shape_rule(self, *avals: ShapedArray, jaxpr: Jaxpr) -> ShapedArray:
        return jaxpr.out_avals[0]

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr) -> Any:
        return ctx.part(jaxpr, operands, self.name, noinline=True)[0]


noinline_p = NoInline()
