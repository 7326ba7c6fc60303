"""all_to_all: each position parts its operand among all and gets a part of each; pswapaxes, where the parts are single.

Seen from outside it exchanges the named axis for a dimension.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShapeError
from xlamini.core.pytree import tree_map
from xlamini.core.tracer import aval_of
from xlamini.primitives.collectives.axes import (
    AxisName,
    Groups,
    axis_size,
    checked_groups,
    dimension,
    names_of,
    size_in,
)
from xlamini.primitives.collectives.base import LinearCollective, Stacked
from xlamini.primitives.collectives.gathering import merged, parted
from xlamini.primitives.shape import expand_dims, moveaxis, reshape, squeeze


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
    return _over_leaves("all_to_all", x, axis_name, (split_axis, concat_axis), axis_index_groups, tiled)


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange the named axis for the dimension `axis` of each leaf of `x`, which has its size.

    With `axis_index_groups`, a list of lists of positions, each group exchanges among itself. Raises NameError if
    there is no such axis, ShapeError for a size that does not fit, ValueError for a dimension that is not there.

    >>> x = xlamini.numpy.arange(4).reshape(2, 2)
    >>> xlamini.vmap(lambda row: pswapaxes(row, "i", 0), axis_name="i")(x)
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    return _over_leaves("pswapaxes", x, axis_name, (axis, axis), axis_index_groups, False)


def _over_leaves(
    what: str, x: Any, axis_name: AxisName, axes: tuple[int, int], axis_index_groups: Any, tiled: bool
) -> Any:
    names = names_of(what, axis_name)
    groups = checked_groups(what, names, axis_index_groups)
    size = size_in(names, groups)
    return tree_map(lambda leaf: _exchanged(what, leaf, names, groups, size, axes, tiled), x)


def _exchanged(
    what: str, x: Any, names: Sequence[Any], groups: Groups, size: int, axes: tuple[int, int], tiled: bool
) -> Any:
    shape = aval_of(x).shape
    names_of_axes = ("axis", "axis") if what == "pswapaxes" else ("split_axis", "concat_axis")
    split = dimension(what, names_of_axes[0], axes[0], len(shape))
    concat = dimension(what, names_of_axes[1], axes[1], len(shape))
    _check_parts(what, names_of_axes[0], shape[split], split, names, size, tiled)
    if len(names) != 1:
        return _one_by_one(x, names, split, concat, tiled)
    if tiled or split == concat:
        return _bound(x, names[0], groups, split, concat, tiled)
    # The new dimension is there before, of size 1, and what is split is of size 1 after.
    new, old = (concat, split + 1) if concat < split else (concat + 1, split)
    return squeeze(_bound(expand_dims(x, (new,)), names[0], groups, old, new, tiled), (old,))


def _bound(x: Any, name: Any, groups: Groups, split: int, concat: int, tiled: bool) -> Any:
    return all_to_all_p.bind(
        x,
        axis_index_groups=groups,
        axis_name=name,
        axis_size=size_in((name,), groups),
        concat_axis=concat,
        split_axis=split,
        tiled=tiled,
    )


def _one_by_one(x: Any, names: Sequence[Any], split: int, concat: int, tiled: bool) -> Any:
    """The exchange along several named axes: that along each of them, of a dimension of its own."""
    shape, sizes = aval_of(x).shape, [axis_size(name) for name in names]
    total, rest = axis_size(tuple(names)), shape[split] // axis_size(tuple(names))
    x = reshape(x, (*shape[:split], *sizes, rest, *shape[split + 1 :]))
    for i, name in enumerate(names):
        x = _bound(x, name, None, split + i, split + i, False)
    x = reshape(x, (*shape[:split], total, rest, *shape[split + 1 :]))
    if not tiled:
        return moveaxis(squeeze(x, (split + 1,)), split, concat)
    return merged(moveaxis(x, split, concat), concat)


def _check_parts(
    what: str, argument: str, found: int, split: int, names: Sequence[Any], size: int, tiled: bool
) -> None:
    if found % size if tiled else found != size:
        axes = ", ".join(map(repr, names))
        needed = "divisible by" if tiled else "equal to"
        fix = "pad it" if tiled or what == "pswapaxes" else "pass tiled=True to exchange blocks, or pad it"
        raise ShapeError(
            f"{what}: the size of {argument} ({found}, dimension {split}) must be {needed} that of the named axis "
            f"{axes} ({size} positions); {fix}"
        )


class AllToAll(LinearCollective):
    """The dimension `split_axis` is parted among the positions, and what comes from them joined along `concat_axis`."""

    name = "all_to_all"
    dimensions = ("split_axis", "concat_axis")

    def shape_rule(
        self, x: ShapedArray, *, axis_size: int, split_axis: int, concat_axis: int, **params: Any
    ) -> ShapedArray:
        shape = list(x.shape)
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
        return x.update(shape=tuple(shape))

    def stacked(self, x: Any, size: int, *, split_axis: int, concat_axis: int, **params: Any) -> Stacked:
        parts = moveaxis(parted(x, split_axis + 1, size), split_axis + 1, 0)
        return merged(moveaxis(parts, 1, concat_axis + 1), concat_axis + 1), 0

    def transpose(self, ct: Any, x: Any, *, split_axis: int, concat_axis: int, **params: Any) -> list[Any]:
        return [self.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)]

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in super().shown_params(params).items() if name != "axis_size"}


all_to_all_p = AllToAll()
