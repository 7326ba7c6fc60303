"""all_gather, which concatenates the operands of all positions, and its adjoint psum_scatter, which sums and splits."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Factors,
    Params,
    ShapedArray,
    ShapeError,
    Values,
    aval_of,
    dims,
    manual_axis,
    reducing,
    tree_map,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.collectives.axes import AxisName, Participants, axis_index, axis_size, dimension, participants
from xlamini.primitives.collectives.base import LinearCollective, Stacked
from xlamini.primitives.collectives.casts import shared_p, terms_along
from xlamini.primitives.collectives.devices import exchange, groups_along, number, reduction
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_in_dim
from xlamini.primitives.shape.shape import moveaxis, reshape, squeeze, sum_over


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Gather each leaf of `x` from all positions along the named axis, stacked along a new dimension `axis`.

    `tiled` concatenates along dimension `axis` instead. Of several names the first one varies slowest. With
    `axis_index_groups`, a list of lists of positions, each group gathers its own. Within shard_map the result counts as
    each device's own, whose cotangents are summed. With `to="invarying"` it is the same for all by its type, and each
    device has its part of the one cotangent; with `to="reduced"` too, but the cotangent is unreduced. Raises NameError
    if there is no such axis, ValueError for a dimension or groups that do not fit, and for groups with these two.

    >>> xlamini.vmap(lambda x: all_gather(x, "i"), axis_name="i", out_axes=None)(xlamini.numpy.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    positions = participants("all_gather", axis_name, axis_index_groups)
    _check_to(to, positions)
    return tree_map(lambda leaf: _gathered(leaf, positions, axis, tiled, to), x)


def _check_to(to: str, positions: Participants) -> None:
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError(f"all_gather: to must be 'varying', 'reduced' or 'invarying', got {to!r}")
    if to != "varying" and positions.groups is not None:
        raise ValueError(
            f"all_gather: to={to!r} says that all along {positions} get the same, but with axis_index_groups each "
            "group gets its own; leave one of them out"
        )


def _gathered(x: Any, positions: Participants, axis: int, tiled: bool, to: str) -> Any:
    shape = aval_of(x).shape
    where = dimension("all_gather", "axis", axis, len(shape) + (not tiled))
    for name in reversed(positions.names):
        primitive = all_gather_invariant_p if to == "invarying" and _is_tracked(name) else all_gather_p
        x = primitive.bind(
            x,
            all_gather_dimension=where,
            axis_index_groups=positions.groups,
            axis_name=(name,),
            axis_size=positions.size_along(name),
            tiled=tiled,
        )
    if to == "reduced":
        x = shared_p.cast(x, tuple(filter(_is_tracked, positions.names)))
    return x if tiled or len(positions.names) == 1 else reshape(x, (*shape[:where], positions.size, *shape[where:]))


def _is_tracked(name: Any) -> bool:
    """True if avals record whether values vary along the axis."""
    axis = manual_axis(name)
    return axis is not None and axis.checked


def psum_scatter(
    x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """The sum of each leaf of `x` over the named axis, parted among the positions along `scatter_dimension`.

    That dimension has the size of the axis and goes away; with `tiled` it is a multiple, and each position gets a
    block. With `axis_index_groups`, a list of lists of positions, each group sums and parts its own. Raises NameError
    if there is no such axis, ShapeError for a size that does not fit, ValueError for groups that do not.

    >>> xlamini.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(xlamini.numpy.ones((3, 3)))
    Array([3., 3., 3.], dtype=float32)
    """
    positions = participants("psum_scatter", axis_name, axis_index_groups)
    return tree_map(lambda leaf: _scattered(leaf, positions, scatter_dimension, tiled), x)


def _scattered(x: Any, positions: Participants, where: int, tiled: bool) -> Any:
    shape = aval_of(x).shape
    where = dimension("psum_scatter", "scatter_dimension", where, len(shape))
    _check_parts(shape[where], where, positions, tiled)
    x = convert(x, np.dtype("int32")) if aval_of(x).dtype == bool else terms_along(x, positions.names)
    if not tiled and len(positions.names) != 1:
        x = reshape(x, (*shape[:where], *map(axis_size, positions.names), *shape[where + 1 :]))
    for name in positions.names:
        x = reduce_scatter_p.bind(
            x,
            axis_index_groups=positions.groups,
            axis_name=(name,),
            axis_size=positions.size_along(name),
            scatter_dimension=where,
            tiled=tiled,
        )
    return x


def _check_parts(found: int, where: int, positions: Participants, tiled: bool) -> None:
    size = positions.size
    if found % size if tiled else found != size:
        needed, fix = ("a multiple of", "pad it") if tiled else ("just", "pass tiled=True to get blocks of it")
        raise ShapeError(
            f"psum_scatter: dimension {where} has size {found}, but must have {needed} the {size} positions that share "
            f"the sum (axis {positions}); {fix}"
        )


class AllGather(LinearCollective):
    """The operand of all `axis_size` positions, along `all_gather_dimension`."""

    name = "all_gather"
    dimensions: tuple[str] = ("all_gather_dimension",)
    checks = NO_NEW_NAN

    def shape_rule(
        self, x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool, **params: Any
    ) -> ShapedArray:
        before, after = x.shape[:all_gather_dimension], x.shape[all_gather_dimension:]
        if tiled:
            return x.update(shape=(*before, axis_size * after[0], *after[1:]))
        return x.update(shape=(*before, axis_size, *after))

    def factors(self, avals: Avals, outs: Avals, params: Params) -> Factors:
        if params["tiled"]:
            return super().factors(avals, outs, params)
        labels, where = list(dims(avals[0])), params["all_gather_dimension"]
        return Factors([labels], [[*labels[:where], None, *labels[where:]]])

    def transpose(self, ct: Any, x: Any, *, all_gather_dimension: int, **params: Any) -> Values:
        return [reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)]

    def stacked(self, x: Any, size: int, *, all_gather_dimension: int, tiled: bool, **params: Any) -> Stacked:
        inside = moveaxis(x, 0, all_gather_dimension)
        return (merged(inside, all_gather_dimension) if tiled else inside), None

    def lower_over_mesh(
        self, ctx: Any, x: Any, *, all_gather_dimension: int, axis_size: int, tiled: bool, **params: Any
    ) -> Any:
        (aval,), where = ctx.avals_in, all_gather_dimension
        if not tiled:
            x = ctx.reshape(x, aval.update(shape=(*aval.shape[:where], 1, *aval.shape[where:])))
        groups = groups_along(ctx, params["axis_name"], params["axis_index_groups"])
        return exchange(ctx, "stablehlo.all_gather", x, groups, all_gather_dim=number(where))


class AllGatherInvariant(AllGather):
    """An all_gather whose result is invariant: devices share its cotangent, and each takes its slice of that."""

    name = "all_gather_invariant"

    def transpose(self, ct: Any, x: Any, *, all_gather_dimension: int, axis_name: Any, **params: Any) -> Values:
        where, width = all_gather_dimension, aval_of(ct).shape[all_gather_dimension] // params["axis_size"]
        start = mul(axis_index(axis_name), width)
        part = dynamic_slice_in_dim(ct, start, width, where, allow_negative_indices=False)
        return [part if params["tiled"] else squeeze(part, (where,))]

    def varying(self, vma: frozenset[Any], params: Params) -> frozenset[Any]:
        return vma.difference(params["axis_name"])


class ReduceScatter(LinearCollective):
    """The sum over all `axis_size` positions, of which each gets a part along `scatter_dimension`."""

    name = "reduce_scatter"
    dimensions: tuple[str] = ("scatter_dimension",)

    def shape_rule(
        self, x: ShapedArray, *, scatter_dimension: int, axis_size: int, tiled: bool, **params: Any
    ) -> ShapedArray:
        before, (size, *after) = x.shape[:scatter_dimension], x.shape[scatter_dimension:]
        return x.update(shape=(*before, size // axis_size, *after) if tiled else (*before, *after))

    def factors(self, avals: Avals, outs: Avals, params: Params) -> Factors:
        if params["tiled"]:
            return super().factors(avals, outs, params)
        return reducing(avals[0], [params["scatter_dimension"]])

    def transpose(self, ct: Any, x: Any, *, scatter_dimension: int, **params: Any) -> Values:
        return [all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params)]

    def stacked(self, x: Any, size: int, *, scatter_dimension: int, tiled: bool, **params: Any) -> Stacked:
        total = sum_over(x, (0,))
        parts = split_dimension(total, scatter_dimension, size) if tiled else total
        return moveaxis(parts, scatter_dimension, 0), 0

    def lower_over_mesh(
        self, ctx: Any, x: Any, *, scatter_dimension: int, axis_size: int, tiled: bool, **params: Any
    ) -> Any:
        out, where = ctx.aval_out, scatter_dimension
        part = out if tiled else out.update(shape=(*out.shape[:where], 1, *out.shape[where:]))
        groups = groups_along(ctx, params["axis_name"], params["axis_index_groups"])
        add = [reduction(ctx, "stablehlo.add")]
        name = "stablehlo.reduce_scatter"
        found = exchange(ctx, name, x, groups, [part], add, scatter_dimension=number(where))
        return found if tiled else ctx.reshape(found, out)


all_gather_p: Final = AllGather()
all_gather_invariant_p: Final = AllGatherInvariant()
reduce_scatter_p: Final = ReduceScatter()


def merged(x: Any, where: int) -> Any:
    """The dimensions `where` and `where + 1` as one."""
    shape = aval_of(x).shape
    return reshape(x, (*shape[:where], shape[where] * shape[where + 1], *shape[where + 2 :]))


def split_dimension(x: Any, where: int, count: int) -> Any:
    """The dimension `where` as two, the first of size `count`."""
    shape = aval_of(x).shape
    return reshape(x, (*shape[:where], count, shape[where] // count, *shape[where + 1 :]))
