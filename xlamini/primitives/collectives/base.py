"""The base class of collectives: an axis name in place of a dimension, until vmap makes the axis a dimension.

A collective defines in `stacked` its result from the stacked operands of all positions. Groups of positions are stacked
one group at a time. Batching over any other axis only shifts the dimension numbers of its parameters.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import Avals, Axis, Dims, Factors, Params, Primitive, Values, alike, aval_of, is_zero
from xlamini.core.errors import ShardingTypeError
from xlamini.core.program.named_axes import divergent_axes
from xlamini.core.sharding.facet import Sharding
from xlamini.primitives.base.batch_ops import move_batch_dim
from xlamini.primitives.collectives.axes import Groups, names_of, unbound
from xlamini.primitives.collectives.devices import is_manual
from xlamini.primitives.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.shape import expand_dims, squeeze
from xlamini.primitives.shape.slice import slice_in_dim

Stacked = tuple[Any, int | None]


class Collective(Primitive):
    """An operation of one operand over one named axis, the param `axis_name`, perhaps by `axis_index_groups`."""

    dimensions: tuple[str, ...] = ()
    """The params that are dimensions of the operand."""

    def __init__(self, name: str | None = None):
        super().__init__(name)
        self.sharding: Sharding = Sharding(factors=self.factors, varying=self.varying, named_axes=self.named_axes)

    def bind(self, *operands: Any, **params: Any) -> Any:
        _check_all_arrive(self, params)
        return super().bind(*operands, **params)

    def factors(self, avals: Avals, outs: Avals, params: Params) -> Factors:
        return alike(avals, outs, [params[name] for name in self.dimensions])

    def varying(self, vma: frozenset[Any], params: Params) -> frozenset[Any]:
        """The axes along which the result varies, where the operand does along `vma`."""
        return vma

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        first = move_batch_dim(operands[0], axis.size, dims[0], 0)
        if axis.name is not None and axis.name in self.named_axes(params):
            return in_groups(self.stacked, first, params.get("axis_index_groups"), params)
        moved = {name: params[name] + 1 for name in self.dimensions}
        return self.bind(first, **{**params, **moved}), 0

    def stacked(self, x: Any, size: int, **params: Any) -> Stacked:
        """The result for `x` of `size` positions along dimension 0; its dimension, None if all have the same."""
        raise NotImplementedError(f"{self.name} does not say what it computes from all positions")

    def lower(self, ctx: Any, x: Any, **params: Any) -> Any:
        names = self.named_axes(params)
        if not is_manual(ctx, names):
            raise unbound(self.name, names[0])
        if ctx.module.manual.size == 1:
            return ctx.inline(lambda x: self.for_one_position(x, **params), x)
        return self.lower_over_mesh(ctx, x, **params)

    def for_one_position(self, x: Any, **params: Any) -> Any:
        """The result for a group of one position."""
        found, dim = self.stacked(expand_dims(x, (0,)), 1, **params)
        return found if dim is None else squeeze(found, (dim,))

    def lower_over_mesh(self, ctx: Any, x: Any, **params: Any) -> Any:
        """Lower the collective over mesh axes, for devices within shard_map."""
        raise NotImplementedError(f"{self.name} does not say what devices do")

    def named_axes(self, params: Params) -> tuple[Any, ...]:
        return names_of(self.name, params["axis_name"])


class LinearCollective(Collective):
    """A collective that is linear: its tangent is that of its operand, sent the same way."""

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, tangents[0] if is_zero(tangents[0]) else self.bind(*tangents, **params)


def _check_all_arrive(primitive: Collective, params: Params) -> None:
    """ShardingTypeError for a collective that some devices do not reach: the others would wait for them forever."""
    alone = divergent_axes().intersection(primitive.named_axes(params))
    if alone:
        raise ShardingTypeError(
            f"{primitive} along {', '.join(map(repr, sorted(alone, key=str)))} in a branch or a loop that a varying "
            "value decides on: devices that do not reach it would keep the others waiting forever; decide on a value "
            "that all devices share, such as lax.pmax of it, or move the collective out"
        )


def in_groups(
    stacked: Callable[..., Stacked], x: Any, groups: Groups, params: Params
) -> Stacked:
    """`stacked` of each group of positions, with the results where the positions were."""
    if groups is None:
        return stacked(x, aval_of(x).shape[0], **params)
    order = [i for group in groups for i in group]
    sorted_x, results, start = rows(x, order), [], 0
    for group in groups:
        part = slice_in_dim(sorted_x, start, start + len(group))
        result, dim = stacked(part, len(group), **params)
        results.append(move_batch_dim(result, len(group), dim, 0))
        start += len(group)
    return rows(concatenate(results, 0), np.argsort(order)), 0


def rows(x: Any, indices: Any) -> Any:
    """`x[indices]` for a list of indices that are static and within bounds."""
    shape = aval_of(x).shape
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,))
    where = np.asarray(indices, np.int32)[:, None]
    return gather(x, where, numbers, (1, *shape[1:]), mode=GatherScatterMode.PROMISE_IN_BOUNDS)
