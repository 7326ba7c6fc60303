"""joint_sums: the sums of several arrays over the same axes, in one loop; only in lowered programs of the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from xlamini.core import Primitive, Shape, ShapedArray
from xlamini.primitives.shape.shape import reduced


def joint_sums(arrays: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """The sum of each array over `axes`; all have one shape and dtype."""
    return joint_sums_p.bind(*arrays, axes=tuple(axes))


class JointSums(Primitive):
    name = "joint_sums"
    multiple_results = True
    lacks: Mapping[str, str] = dict.fromkeys(("jvp", "batch"), "only in lowered programs of the CPU")

    def shape_rule(self, *avals: ShapedArray, axes: Shape) -> list[ShapedArray]:
        return [reduced(aval, axes, self.name) for aval in avals]

    def lower(self, ctx: Any, *operands: Any, axes: Shape) -> list[Any]:
        count, scalar = len(operands), ShapedArray((), ctx.avals_in[0].dtype)

        def added(*numbers: Any) -> list[Any]:
            pairs = zip(numbers[:count], numbers[count:], strict=True)
            return [ctx.op("stablehlo.add", x, y, avals=[scalar]) for x, y in pairs]

        body = ctx.scalar_region([scalar] * (2 * count), added)
        starts = [ctx.constant(0, scalar)] * count
        types = [ctx.mlir.type(aval) for aval in ctx.avals_out]
        return ctx.many("stablehlo.reduce", [*operands, *starts], types, [body], dimensions=list(axes))


joint_sums_p: Final = JointSums()
