"""Special functions that are programs of simpler operations: sums of series, until every element has converged.

    @elementwise(family=Formula, accepts=FLOAT)
    def igamma(a, x):
        \"""…\"""

    @igamma.formula
    def _(a, x):
        def step(n, term, total):
            term = term * x / (a + n)
            return term > eps * total, term, total + term

        _, total = iterate(step, ones, ones, limit=2000)
        …

A formula sees operands of one shape, in float32 or float64: narrower floats are computed in float32 and rounded.
`iterate` may be used in formulas only.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import Jaxpr, Primitive, ShapedArray, aval_of, close_over, literal
from xlamini.core.dtypes.limits import finfo
from xlamini.core.tracing.tracer import build
from xlamini.lowering.control_flow import while_loop
from xlamini.primitives.base.elementwise import Elementwise
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.reductions.reductions import reduce_or


class Formula(Elementwise):
    """An elementwise operation whose formula sees wide floats."""

    def formula(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        def in_wide(*operands: Any, **params: Any) -> Any:
            dtype = aval_of(operands[0]).dtype
            wide = np.promote_types(dtype, np.float32) if dtype.itemsize > 2 else np.dtype(np.float32)
            return convert(compute(*[convert(x, wide) for x in operands], **params), dtype)

        super().formula(in_wide)
        return compute


def iterate(step: Callable[..., Sequence[Any]], *state: Any, limit: int) -> list[Any]:
    """Repeat `going, *state = step(n, *state)` with n = 1, 2, … while `going` holds anywhere; the last state.

    The state is arrays of the same types each time, n a number in the dtype of the last of them; `limit` bounds it.
    """
    number = ShapedArray((), aval_of(state[-1]).dtype)
    avals = [number, *(ShapedArray(a.shape, a.dtype) for a in map(aval_of, state))]

    def flat(n: Any, *values: Any) -> list[Any]:
        going, *new = step(n, *values)
        return [n + 1, reduce_or(going, range(aval_of(going).ndim)), *new]

    body, captured = build(flat, avals)
    holds, _ = build(lambda n, going: [bitwise_and(going, lt(n, limit))], [number, ShapedArray((), np.dtype(bool))])
    start = [literal(1, number.dtype), literal(True, np.dtype(bool)), *state]
    _, _, *last = iterate_p.bind(*captured, *start, step=close_over(body), holds=holds)
    return last


class Iterate(Primitive):
    """The loop of `iterate`: only in lowered formulas, so that no transformation meets it."""

    name = "iterate"
    traits = 0
    multiple_results = higher_order = True
    lacks: Mapping[str, str] = dict.fromkeys(("jvp", "batch"), "only in lowered formulas")

    def shape_rule(self, *avals: ShapedArray, step: Jaxpr, holds: Jaxpr) -> list[ShapedArray]:
        n, *state = step.out_avals
        return [n, *state]

    def lower(self, ctx: Any, *operands: Any, step: Jaxpr, holds: Jaxpr) -> list[Any]:
        count = len(step.out_avals)
        captured, start = operands[:-count], operands[-count:]

        def body(n: Any, going: Any, *state: Any) -> list[Any]:
            return ctx.run(step, [*captured, n, *state])

        return while_loop(ctx, start, lambda n, going, *state: ctx.run(holds, [n, going]), body)


iterate_p: Final = Iterate()


def epsilon(x: Any) -> float:
    """The distance from 1 to the next number in the dtype of x."""
    return float(finfo(aval_of(x).dtype).eps)


def horner(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, that of the highest power first."""
    out: Any = coefficients[0]
    for c in coefficients[1:]:
        out = out * x + c
    return out
