"""dynamic_update_slice: an array with one box replaced, at indices computed at run time.

A box that would stick out is moved inside, as in `dynamic_slice`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Factors,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    cotangent_aval,
    dims,
    is_linear,
    is_zero,
    literal,
    tangent_aval,
)
from xlamini.core.program.checks import Checks, Failure
from xlamini.core.program.memory import Memory
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.factors import where_split
from xlamini.lowering.bits import moved
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.elementwise import like_dtypes
from xlamini.primitives.base.tangent_ops import instantiated, zeros
from xlamini.primitives.indexing.dynamic_slice import (
    check_starts,
    dynamic_slice_p,
    start_scalars,
    start_vectors,
    starts_in_dim,
)
from xlamini.primitives.indexing.gather import GatherScatterMode
from xlamini.primitives.indexing.scatter import ScatterDimensionNumbers, scatter_p
from xlamini.primitives.shape.shape import broadcast, expand_dims
from xlamini.primitives.shape.slice import checked_axis
from xlamini.runtime import Array


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool | Sequence[bool] = True
) -> Array:
    """The operand with the box that begins at `start_indices` replaced by `update`.

    A box that would stick out is moved inside. `update` has the operand's dtype and rank, and is nowhere larger; else
    TypeError or ShapeError. Negative indices count from the end if `allow_negative_indices`.

    >>> dynamic_update_slice(xlamini.numpy.zeros(4), xlamini.numpy.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    starts = start_scalars(operand, start_indices, allow_negative_indices, "dynamic_update_slice")
    return dynamic_update_slice_p.bind(*like_dtypes((operand, update)), *starts)


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The operand with the elements from `start_index` on along one axis replaced by `update`.

    >>> dynamic_update_slice_in_dim(xlamini.numpy.zeros(4), xlamini.numpy.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    ndim = aval_of(operand).ndim
    starts = starts_in_dim(start_index, checked_axis(axis, ndim, "dynamic_update_slice_in_dim"), ndim)
    if aval_of(update).ndim == 0 < ndim:
        update = broadcast(update, (1,) * ndim)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The operand with the slice at `index` of one axis replaced by `update`, which may lack that axis.

    >>> dynamic_update_index_in_dim(xlamini.numpy.zeros((2, 2)), xlamini.numpy.ones(2), 1, 0)
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    ndim = aval_of(operand).ndim
    axis = checked_axis(axis, ndim, "dynamic_update_index_in_dim")
    if aval_of(update).ndim != ndim:
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)


def _failures(operands: Values, outs: Values) -> Sequence[Failure]:
    from xlamini.primitives.indexing.index_failures import starts_outside  # for those who check only

    x, update, *starts = operands
    return starts_outside(aval_of(x), starts, aval_of(update).shape)


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    x, _, *starts = avals
    return Factors([dims(x), where_split(x), *[()] * len(starts)], [dims(x)])


class DynamicUpdateSlice(Primitive):
    name = "dynamic_update_slice"
    sharding: Sharding = Sharding(factors=_factors, linear=(slice(0, 2),), chooses_memory=True)
    memory: Memory = Memory(reads=True, updates=True)
    checks: Checks = Checks(makes_nan=False, failures=_failures)

    def shape_rule(self, x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
        check_starts(self.name, x, starts)
        if x.dtype != update.dtype:
            raise TypeError(
                f"dynamic_update_slice: update has dtype {update.dtype}, the operand {x.dtype}; convert it with .astype"
            )
        if x.ndim != update.ndim or any(u > n for u, n in zip(update.shape, x.shape, strict=True)):
            raise ShapeError(
                f"dynamic_update_slice: the update {update.str_short()} does not fit into {x.str_short()}; it must "
                "have "
                "as many dimensions, none of them larger"
            )
        return x.update(weak_type=x.weak_type and update.weak_type)

    def jvp(self, primals: Values, tangents: Values) -> Any:
        out = self.bind(*primals)
        if is_zero(tangents[0]) and is_zero(tangents[1]):
            return out, Zero(tangent_aval(aval_of(out)))
        return out, self.bind(*map(instantiated, tangents[:2]), *primals[2:])

    def transpose(self, ct: Any, x: Any, update: Any, *starts: Any) -> Values:
        kept = self.bind(ct, zeros(cotangent_aval(aval_of(update))), *starts) if is_linear(x) else None
        sizes = aval_of(update).shape
        given = dynamic_slice_p.bind(ct, *starts, slice_sizes=sizes) if is_linear(update) else None
        return [kept, given, *(None for _ in starts)]

    def batch(self, axis: Axis, operands: Values, dims: Dims) -> Any:
        (x, update, *starts), start_dims = operands, dims[2:]
        if all(d is None for d in start_dims):
            x, update = with_batch_first((x, update), dims[:2], axis.size)
            first = literal(0, aval_of(starts[0]).dtype if starts else np.int32)
            return self.bind(x, update, first, *starts), 0
        indices, index_dim = start_vectors(axis, starts, start_dims)
        ranks = tuple(range(len(starts)))
        return scatter_p.batch(
            axis,
            (x, indices, update),
            (dims[0], index_dim, dims[1]),
            dimension_numbers=ScatterDimensionNumbers(ranks, (), ranks),
            mode=GatherScatterMode.CLIP,
            indices_are_sorted=True,
            unique_indices=True,
        )

    def lower(self, ctx: Any, x: Any, update: Any, *starts: Any) -> Any:
        return moved(ctx, "stablehlo.dynamic_update_slice", [x, update], *starts, out=ctx.aval_out)

    def cost(self, x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> Cost:
        return Cost(0, 2 * update.nbytes)


dynamic_update_slice_p: Final = DynamicUpdateSlice()
