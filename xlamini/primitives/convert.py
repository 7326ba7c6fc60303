"""convert_element_type and its relatives: the same values in another dtype."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.tangents import Zero, is_differentiable, is_zero, tangent_aval
from xlamini.core.tracer import aval_of
from xlamini.primitives.elementwise import ANY, Elementwise, elementwise


class Convert(Elementwise):
    """Linear between floating-point types; the derivative stops at the others."""

    def result(self, aval: ShapedArray, *, new_dtype: Any, weak_type: bool) -> ShapedArray:
        return ShapedArray(aval.shape, new_dtype, weak_type)

    def jvp(self, primals: Any, tangents: Any, *, new_dtype: Any, weak_type: bool) -> Any:
        out = self.bind(*primals, new_dtype=new_dtype, weak_type=weak_type)
        aval = tangent_aval(aval_of(out))
        if is_zero(tangents[0]) or not is_differentiable(aval):
            return out, Zero(aval)
        return out, convert(tangents[0], new_dtype)

    def transpose(self, ct: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
        return [convert(ct, x.aval.dtype)]

    def lower(self, ctx: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
        (source,), target = ctx.avals_in, ctx.aval_out
        if source.dtype == target.dtype:
            return x
        if target.dtype == np.bool_:
            return ctx.op(
                "stablehlo.compare",
                x,
                ctx.constant(0, source),
                comparison_direction="#stablehlo<comparison_direction NE>",
            )
        if source.dtype.kind == "c" and target.dtype.kind != "c":
            real = ShapedArray(source.shape, np.zeros((), source.dtype).real.dtype)
            x = ctx.op("stablehlo.real", x, avals=[real])
        return ctx.op("stablehlo.convert", x)


@elementwise(family=Convert, accepts=ANY)
def convert_element_type_p(x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    """The values of `x` in `new_dtype`."""


convert_element_type_p.name = "convert_element_type"


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` in `dtype`, or `x` itself if it is of that type already."""
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    return convert_element_type_p.bind(x, new_dtype=np.dtype(dtype), weak_type=weak_type)
