"""all_to_all: each position parts its operand among all and gets a part of each; pswapaxes, where the parts are single.

Seen from outside it exchanges the named axis for a dimension.
"""
from __future__ import annotations

from typing import Any, Final

from xlamini.core import Params, ShapedArray, ShapeError, Values, aval_of, tree_map
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.primitives.collectives.axes import AxisName, Participants, axis_size, dimension, participants
from xlamini.primitives.collectives.base import LinearCollective, Stacked
from xlamini.primitives.collectives.devices import exchange, groups_along, number
from xlamini.primitives.collectives.gathering import merged, split_dimension
from xlamini.primitives.shape.shape import expand_dims, moveaxis, reshape, squeeze

Axes = tuple[tuple[str, int], tuple[str, int]]


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Part each leaf of `x` along `split_axis` among the positions of the named axis, and gather along `concat_axis`.

    `split_axis` has the size of the named axis and goes away, and `concat_axis` is a new dimension of the result, of
    that size. With `tiled` the parts are blocks, and both are dimensions of operand and result. With
    `axis_index_groups`, a list of lists of positions, each group exchanges among itself. Raises NameError if there is
    no such axis, ShapeError for a size that does not fit, ValueError for dimensions or groups that do not.

    >>> x = xlamini.numpy.arange(4).reshape(2, 2)
    >>> xlamini.vmap(lambda row: all_to_all(row, "i", 0, 0), axis_name="i")(x)
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    positions = participants("all_to_all", axis_name, axis_index_groups)
    axes = ("split_axis", split_axis), ("concat_axis", concat_axis)
    return tree_map(lambda leaf: _exchanged("all_to_all", leaf, positions, axes, tiled), x)


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange the named axis for the dimension `axis` of each leaf of `x`, which has its size.

    With `axis_index_groups`, a list of lists of positions, each group exchanges among itself. Raises NameError if
    there is no such axis, ShapeError for a size that does not fit, ValueError for a dimension that is not there.

    >>> x = xlamini.numpy.arange(4).reshape(2, 2)
    >>> xlamini.vmap(lambda row: pswapaxes(row, "i", 0), axis_name="i")(x)
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    positions = participants("pswapaxes", axis_name, axis_index_groups)
    axes = ("axis", axis), ("axis", axis)
    return tree_map(lambda leaf: _exchanged("pswapaxes", leaf, positions, axes, False), x)


def _exchanged(what: str, x: Any, positions: Participants, axes: Axes, tiled: bool) -> Any:
    """Exchange one leaf; `axes` are the dimension that is split and the new one, with the arguments' names."""
    shape = aval_of(x).shape
    split, concat = (dimension(what, argument, axis, len(shape)) for argument, axis in axes)
    _check_parts(what, axes[0][0], shape[split], split, positions, tiled)
    if len(positions.names) != 1:
        return _one_by_one(x, positions, split, concat, tiled)
    (name,) = positions.names
    if tiled or split == concat:
        return _bound(x, name, positions, split, concat, tiled)
    # The new dimension is there before, of size 1, and what is split is of size 1 after.
    new, old = (concat, split + 1) if concat < split else (concat + 1, split)
    return squeeze(_bound(expand_dims(x, (new,)), name, positions, old, new, tiled), (old,))


def _bound(x: Any, name: Any, positions: Participants, split: int, concat: int, tiled: bool) -> Any:
    return all_to_all_p.bind(
        x,
        axis_index_groups=positions.groups,
        axis_name=name,
        axis_size=positions.size_along(name),
        concat_axis=concat,
        split_axis=split,
        tiled=tiled,
    )


def _one_by_one(x: Any, positions: Participants, split: int, concat: int, tiled: bool) -> Any:
    """The exchange along several named axes: that along each of them, of a dimension of its own."""
    shape, sizes, total = aval_of(x).shape, map(axis_size, positions.names), positions.size
    rest = shape[split] // total
    x = reshape(x, (*shape[:split], *sizes, rest, *shape[split + 1 :]))
    for i, name in enumerate(positions.names):
        x = _bound(x, name, positions, split + i, split + i, False)
    x = reshape(x, (*shape[:split], total, rest, *shape[split + 1 :]))
    if not tiled:
        return moveaxis(squeeze(x, (split + 1,)), split, concat)
    return merged(moveaxis(x, split, concat), concat)


def _check_parts(what: str, argument: str, found: int, split: int, positions: Participants, tiled: bool) -> None:
    size = positions.size
    if found % size if tiled else found != size:
        needed = "divisible by" if tiled else "equal to"
        fix = "pad it" if tiled or argument == "axis" else "pass tiled=True to exchange blocks, or pad it"
        raise ShapeError(
            f"{what}: the size of {argument} ({found}, dimension {split}) must be {needed} that of the named axis "
            f"{positions} ({size} positions); {fix}"
        )


class AllToAll(LinearCollective):
    """Split the dimension `split_axis` among the positions, and concatenate the parts received along `concat_axis`."""

    name = "all_to_all"
    dimensions: tuple[str, str] = ("split_axis", "concat_axis")
    checks = NO_NEW_NAN

    def shape_rule(
        self, x: ShapedArray, *, axis_size: int, split_axis: int, concat_axis: int, **params: Any
    ) -> ShapedArray:
        shape = list(x.shape)
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
        return x.update(shape=tuple(shape))

    def transpose(self, ct: Any, x: Any, *, split_axis: int, concat_axis: int, **params: Any) -> Values:
        return [self.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)]

    def stacked(self, x: Any, size: int, *, split_axis: int, concat_axis: int, **params: Any) -> Stacked:
        parts = moveaxis(split_dimension(x, split_axis + 1, size), split_axis + 1, 0)
        return merged(moveaxis(parts, 1, concat_axis + 1), concat_axis + 1), 0

    def lower_over_mesh(
        self, ctx: Any, x: Any, *, axis_name: Any, axis_size: int, split_axis: int, concat_axis: int, **params: Any
    ) -> Any:
        groups = groups_along(ctx, (axis_name,), params["axis_index_groups"])
        dims = {"split_dimension": number(split_axis), "concat_dimension": number(concat_axis)}
        return exchange(ctx, "stablehlo.all_to_all", x, groups, split_count=number(axis_size), **dims)

    def shown_params(self, params: Params) -> Params:
        return {name: value for name, value in super().shown_params(params).items() if name != "axis_size"}


all_to_all_p: Final = AllToAll()
