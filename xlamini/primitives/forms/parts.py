"""Parts of forms: functions that XLA's CPU compiler computes by themselves, and a choice between two ways.

Both are only in the programs of forms (lowering/specialize.py), so that no transformation meets them.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from xlamini.core import Avals, Jaxpr, Primitive, ShapedArray, aval_of
from xlamini.core.tracing.tracer import build
from xlamini.lowering import control_flow

_LACKS: Mapping[str, str] = dict.fromkeys(("jvp", "batch"), "only in the programs of forms")


def noinline(fun: Callable[..., Any], *operands: Any) -> Any:
    """The array `fun(*operands)`, fused neither with what gives the operands nor with what reads the result.

    XLA's CPU backend fuses all it can, also what it then computes again for each index at which it is read; it drops
    optimization barriers before it fuses. What stays apart is a function that it must not inline.
    """
    return noinline_p.bind(*operands, jaxpr=traced(fun, list(map(aval_of, operands))))


def case(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """The array `branches[index](*operands)`; only that branch is computed. `index` is an int32."""
    avals = list(map(aval_of, operands))
    return case_p.bind(index, *operands, branches=tuple(traced(branch, avals) for branch in branches))


def traced(fun: Callable[..., Any], avals: Avals) -> Jaxpr:
    """The program of a function with one result, for operands without weak types; TypeError if it captures arrays."""
    jaxpr, captured = build(lambda *values: [fun(*values)], [ShapedArray(a.shape, a.dtype) for a in avals])
    if captured:
        raise TypeError(f"{fun} captured arrays; give them as operands, or write them as literals")
    return jaxpr


class Part(Primitive):
    """A primitive with jaxprs that only forms have."""

    traits = 0
    higher_order = True
    lacks: Mapping[str, str] = _LACKS


class NoInline(Part):
    name = "noinline"

    def shape_rule(self, *avals: ShapedArray, jaxpr: Jaxpr) -> ShapedArray:
        return jaxpr.out_avals[0]

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr) -> Any:
        return ctx.part(jaxpr, operands, self.name, noinline=True)[0]


class Case(Part):
    name = "case"

    def shape_rule(self, *avals: ShapedArray, branches: Sequence[Jaxpr]) -> ShapedArray:
        return branches[0].out_avals[0]

    def lower(self, ctx: Any, index: Any, *operands: Any, branches: Sequence[Jaxpr]) -> Any:
        bodies = [lambda jaxpr=jaxpr: ctx.run(jaxpr, operands) for jaxpr in branches]
        return control_flow.case(ctx, index, bodies, branches[0].out_avals)[0]


noinline_p: Final = NoInline()
case_p: Final = Case()
