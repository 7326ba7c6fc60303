"""The threefry 2x32 hash: two key words and two counter words in, two random words out.

It is a primitive so that a program holds one equation for each draw; it is lowered to one function of the module per
type of its operands, which all draws of this type call.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import Axis, Cost, Dims, Jaxpr, Primitive, ShapedArray, ShapeError, Values, literal, memoised
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.tracing.tracer import build
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.elementwise.arithmetic import add
from xlamini.primitives.elementwise.bitwise import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from xlamini.primitives.shape.shape import broadcast_in_dim

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


_UINT32 = np.dtype(np.uint32)
_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS = 5
_OPS_PER_ROUND = 6


def threefry2x32(key: Sequence[Any], counters: Sequence[Any]) -> list[Any]:
    """Two arrays of random words, from two of key words and two of counters.

    All are uint32 and of one shape, or scalars, which broadcast; else ShapeError.
    """
    return threefry2x32_p.bind(*key, *counters)


class Threefry2x32(Primitive):
    name = "threefry2x32"
    multiple_results = True
    sharding: Sharding = same_dimensions()
    lacks: Mapping[str, str] = {"jvp": "of integers only"}

    def shape_rule(self, *avals: ShapedArray) -> list[ShapedArray]:
        shapes = {a.shape for a in avals} - {()}
        if len(shapes) > 1 or any(a.dtype != _UINT32 for a in avals):
            found = ", ".join(a.str_short() for a in avals)
            raise ShapeError(f"threefry2x32: operands must be uint32, scalars or of one shape, got {found}")
        return [ShapedArray(shapes.pop() if shapes else (), _UINT32)] * 2

    def batch(self, axis: Axis, operands: Values, dims: Dims) -> Any:
        moved = with_batch_first(operands, dims, axis.size)
        shape = max((x.shape for x in moved), key=len)
        return self.bind(*(broadcast_in_dim(x, shape, range(x.ndim)) for x in moved)), [0, 0]

    def lower(self, ctx: Any, *operands: Any) -> Any:
        return ctx.call(_hash(tuple(ctx.avals_in)), operands, self.name)

    def cost(self, *avals: ShapedArray) -> Cost:
        base = super().cost(*avals)
        return base._replace(flops=base.flops * _OPS_PER_ROUND * _GROUPS * 4 // 2)


threefry2x32_p: Final = Threefry2x32()


@memoised("call: threefry hashes", 1024)
def _hash(avals: tuple[ShapedArray, ...]) -> Jaxpr:
    return build(_rounds, avals, "threefry2x32")[0]


def _rounds(k0: Any, k1: Any, x0: Any, x1: Any) -> list[Any]:
    schedule = (k0, k1, bitwise_xor(bitwise_xor(k0, k1), _word(_PARITY)))
    x0, x1 = add(x0, k0), add(x1, k1)
    for group in range(_GROUPS):
        for distance in _ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            x1 = bitwise_xor(x0, _rotated(x1, distance))
        x0 = add(x0, schedule[(group + 1) % 3])
        x1 = add(add(x1, schedule[(group + 2) % 3]), _word(group + 1))
    return [x0, x1]


def _rotated(x: Any, distance: int) -> Any:
    return bitwise_or(shift_left(x, _word(distance)), shift_right_logical(x, _word(32 - distance)))


def _word(value: int) -> Any:
    return literal(value, _UINT32)
