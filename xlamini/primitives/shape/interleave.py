"""interleave: the elements of two arrays alternately, along an axis."""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    aval_of,
    is_linear,
    literal,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import MOVED
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.dtype_kinds import BOOL, INTEGER, kind_of
from xlamini.primitives.base.elementwise import add_any
from xlamini.primitives.base.tangent_ops import instantiated
from xlamini.primitives.elementwise.bitwise import bitwise_or
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import reshape
from xlamini.primitives.shape.slice import slice_in_dim

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class Interleave(Primitive):
    """Of two arrays of one dtype: even[0], odd[0], even[1], …; the first may have one element more along the axis.

    On the CPU as pairs side by side. An accelerator would copy these, as their dimension of 2 does not fill a tile:
    there it is the sum of both, spread out over the result.
    """

    name = "interleave"
    sharding: Sharding = same_dimensions(linear=JOINTLY)
    memory = MOVED
    checks = NO_NEW_NAN

    def shape_rule(self, even: ShapedArray, odd: ShapedArray, *, axis: int) -> ShapedArray:
        sizes = [a.shape[axis] for a in (even, odd)]
        others = [(*a.shape[:axis], *a.shape[axis + 1 :]) for a in (even, odd)]
        if sizes[0] - sizes[1] not in (0, 1) or others[0] != others[1]:
            raise ShapeError(f"interleave: {even.str_short()} and {odd.str_short()} do not alternate along axis {axis}")
        shape = (*even.shape[:axis], sum(sizes), *even.shape[axis + 1 :])
        return even.update(shape=shape, weak_type=even.weak_type and odd.weak_type)

    def jvp(self, primals: Values, tangents: Values, *, axis: int) -> Any:
        return self.bind(*primals, axis=axis), self.bind(*map(instantiated, tangents), axis=axis)

    def transpose(self, ct: Any, *operands: Any, axis: int) -> Values:
        return [slice_in_dim(ct, i, None, 2, axis) if is_linear(x) else None for i, x in enumerate(operands)]

    def batch(self, batch_axis: Axis, operands: Values, dims: Dims, *, axis: int) -> Any:
        return self.bind(*with_batch_first(operands, dims, batch_axis.size), axis=axis + 1), 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        return Form(partial(_in_pairs if platform.name == "cpu" else _as_sum, **params))

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        return super().cost(*avals, **params)._replace(flops=0)


interleave_p: Final = Interleave()


# --- helpers


def _in_pairs(even: Any, odd: Any, axis: int) -> Any:
    shape = aval_of(odd).shape
    pairs = (*shape[:axis], shape[axis], 1, *shape[axis + 1 :])
    paired = concatenate([reshape(slice_in_dim(even, 0, shape[axis], axis=axis), pairs), reshape(odd, pairs)], axis + 1)
    mixed = reshape(paired, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]))
    if aval_of(even).shape[axis] == shape[axis]:
        return mixed
    return concatenate([mixed, slice_in_dim(even, shape[axis], None, axis=axis)], axis)


def _as_sum(even: Any, odd: Any, axis: int) -> Any:
    dtype, rank = aval_of(even).dtype, aval_of(even).ndim
    kind = kind_of(dtype)
    # The number that changes none that it is added to: 0.0 would make -0.0 positive.
    nothing = literal(False if kind is BOOL else 0 if kind in INTEGER else np.array(-0.0, dtype)[()], dtype)
    more = aval_of(even).shape[axis] - aval_of(odd).shape[axis]
    ends = ((0, 1 - more), (1, more))
    spread = [
        pad(x, nothing, [(*end, 1) if d == axis else (0, 0, 0) for d in range(rank)])
        for x, end in zip((even, odd), ends, strict=True)
    ]
    return bitwise_or(*spread) if kind is BOOL else add_any(*spread)
