"""CPU lowerings made from formulas.

    @vectorised()
    def arctangent(x):
        ...

A formula takes arrays of one shape, all in float32 or all in float64, and gives one of the same type; narrower floats
are computed in float32 and rounded. It is traced with x64 on, once for each type, and becomes a function of the module
that all equations of the operation call, so that programs stay small.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import Jaxpr, ShapedArray, Values, aval_of, enable_x64, memoised
from xlamini.core.tracer import build
from xlamini.primitives.arithmetic import div
from xlamini.primitives.bitwise import bitwise_and, bitwise_or, shift_right_logical
from xlamini.primitives.comparison import gt, lt
from xlamini.primitives.convert_element_type import convert
from xlamini.primitives.cpu_math.floats import BITS, FLOAT32, FLOAT64, bits_of, from_bits
from xlamini.primitives.reductions import reduce_or

Formula = Callable[..., Any]
Lowering = Callable[..., Any]
"""What writes an operation's StableHLO: `lowering(ctx, *operands)`, with operands in the shape of the result."""


def vectorised(largest_float64: float | None = None, few: int = 0) -> Callable[[Formula], Lowering]:
    """Decorator: the lowering `lower(ctx, *operands)` through a formula.

    Arrays of fewer than `few` elements in float32 are left to XLA's op. That is compiled sooner and, in a program of
    its own, faster: XLA does not count its own sine as work, and runs a program of little work in the calling thread,
    but hands others over to another thread, or to several, which takes 4 to 10 microseconds.

    `largest_float64` is the magnitude up to which a formula of one operand is right in float64. Arrays that hold larger
    finite numbers are left to XLA's op, which needs a look at all elements first; so are arrays of few elements.
    """

    def lowering(formula: Formula) -> Lowering:
        @functools.wraps(formula)
        def lower(ctx: Any, *operands: Any) -> Any:
            double = ctx.aval_out.dtype == FLOAT64
            if double and largest_float64 is not None:
                return _up_to(largest_float64, ctx, formula, *operands)
            if not double and ctx.aval_out.size < few:
                return _xlas(ctx, *operands)
            return _vectorised(ctx, formula, operands)

        return lower

    return lowering


# Below so many elements XLA's op is about as fast: looking at all elements and choosing costs a few microseconds.
_FEW = 512


def _vectorised(ctx: Any, formula: Formula, operands: Values) -> Any:
    aval = ShapedArray(ctx.aval_out.shape, ctx.aval_out.dtype)
    wide = aval if aval.dtype.itemsize >= 4 else aval.update(dtype=FLOAT32)
    jaxpr = _traced(formula, wide, len(operands))
    (out,) = ctx.part(jaxpr, _converted(ctx, operands, aval, wide), ctx.eqn.primitive.name)
    return _converted(ctx, [out], wide, aval)[0]


def _xlas(ctx: Any, *operands: Any) -> Any:
    return ctx.eqn.primitive.by_xla(ctx, *operands)


def _up_to(largest: float, ctx: Any, formula: Formula, x: Any) -> Any:
    if ctx.aval_out.size < _FEW:
        return _xlas(ctx, x)

    def too_large(x: Any) -> Any:
        size = abs(x)
        within = reduce_or(bitwise_and(gt(size, largest), lt(size, math.inf)), range(aval_of(x).ndim))
        return convert(within, np.dtype(np.int32))

    index = ctx.inline(too_large, x)
    branches = [lambda: [_vectorised(ctx, formula, [x])], lambda: [_xlas(ctx, x)]]
    regions = [ctx.region([], branch) for branch in branches]
    return ctx.many("stablehlo.case", [index], [ctx.mlir.type(ctx.aval_out)], regions)[0]


def _converted(ctx: Any, values: Values, old: ShapedArray, new: ShapedArray) -> list[Any]:
    return list(values) if old == new else [ctx.op("stablehlo.convert", x, avals=[new]) for x in values]


@memoised("call: formulas of elementary functions", 64)
def _traced(formula: Formula, aval: ShapedArray, arity: int) -> Jaxpr:
    with enable_x64(True):
        jaxpr, captured = build(lambda *operands: [_costly(formula(*operands))], [aval] * arity)
    if captured:
        raise TypeError(f"the formula {formula.__name__} captured array constants; write them as numbers")
    return jaxpr


def _costly(x: Any) -> Any:
    """A copy of the value through a division of its bits by 1, opaque to XLA's cost model and removed by LLVM.

    XLA computes simple operations again wherever their results are used, for every row that an array is broadcast to;
    of divisions, as of its own sine, it keeps the results.
    """
    bits = bits_of(x)
    zero = shift_right_logical(shift_right_logical(bits, BITS[aval_of(x).dtype].width - 1), 1)
    return from_bits(div(bits, bitwise_or(zero, 1)))
