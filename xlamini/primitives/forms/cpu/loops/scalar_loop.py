"""Loops over single elements, in CPU lowerings.

XLA's CPU compiler makes one native loop of a `while` whose step touches few bytes (less than 1 KB), as a C compiler
would. So what no operation on whole arrays does well, sorting above all, can be written down step by step. Two rules
keep such a loop fast: an array is changed in place only if nothing reads its old state after the change, so a step
reads again what it has written; and a step is short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import Jaxpr, Primitive, ShapedArray, aval_of, close_over, literal
from xlamini.core.tracing.tracer import build
from xlamini.lowering.control_flow import while_loop
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_p
from xlamini.primitives.shape.shape import reshape

PLACE = np.dtype(np.uint32)
"""The dtype of places in arrays: XLA keeps indices inside an array, and unsigned ones need half of the tests."""


def place(number: int) -> Any:
    """A place as a constant; places are counted modulo 2**32."""
    return literal(number % 2**32, PLACE)


def element(x: Any, i: Any) -> Any:
    """Element i of a row, as a scalar."""
    return reshape(dynamic_slice_p.bind(x, i, slice_sizes=(1,)), ())


def with_element(x: Any, i: Any, value: Any) -> Any:
    """The row with element i replaced."""
    return dynamic_update_slice_p.bind(x, reshape(value, (1,)), i)


def scalar_loop(step: Callable[..., Sequence[Any]], count: Any, *state: Any) -> list[Any]:
    """`state = step(i, *state)` for each place i below `count`, a number or a scalar; the last state."""
    avals = [ShapedArray((), PLACE), *(ShapedArray(a.shape, a.dtype) for a in map(aval_of, state))]
    body, captured = build(lambda i, *values: list(step(i, *values)), avals)
    limit = place(count) if isinstance(count, int) else count
    return scalar_loop_p.bind(*captured, limit, *state, step=close_over(body), captured=len(captured))


class ScalarLoop(Primitive):
    name = "scalar_loop"
    traits = 0
    multiple_results = True
    lacks: Mapping[str, str] = dict.fromkeys(("jvp", "batch"), "only in lowered programs of the CPU")

    def shape_rule(self, *avals: ShapedArray, step: Jaxpr, captured: int) -> list[ShapedArray]:
        return list(step.out_avals)

    def lower(self, ctx: Any, *operands: Any, step: Jaxpr, captured: int) -> list[Any]:
        around, limit, start = operands[:captured], operands[captured], operands[captured + 1 :]
        pair = [ShapedArray((), PLACE)] * 2

        def holds(i: Any, *state: Any) -> list[Any]:
            return [ctx.inline(lt, i, limit, avals=pair)]

        def body(i: Any, *state: Any) -> list[Any]:
            following = ctx.op("stablehlo.add", i, ctx.constant(1, pair[0]), avals=pair[:1])
            return [following, *ctx.run(step, [*around, i, *state])]

        return while_loop(ctx, [ctx.constant(0, pair[0]), *start], holds, body)[1:]


scalar_loop_p: Final = ScalarLoop()
