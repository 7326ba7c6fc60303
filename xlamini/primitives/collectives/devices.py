"""Collectives between the devices of a mesh, in StableHLO: replica groups, channels and operands."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapedArray

Groups = np.ndarray
"""The numbers of devices that work together, a row for each group, in the order of their positions."""


def is_manual(ctx: Any, names: Sequence[Any]) -> bool:
    """True if the axes are manual axes of the mesh: the program is written for one device along them."""
    return ctx.module.manual is not None and ctx.module.manual_axes.issuperset(names)


def groups_along(ctx: Any, names: Sequence[Any], index_groups: Any = None) -> Groups:
    """The replica groups along some axes, or along one axis in groups of positions."""
    mesh = ctx.module.manual
    numbers = ctx.module.meshes.numbers(mesh).reshape(mesh.axis_sizes)
    axes = [mesh.axis_names.index(name) for name in names]
    last = np.moveaxis(numbers, axes, range(numbers.ndim - len(axes), numbers.ndim))
    rows = last.reshape(-1, int(np.prod([mesh.axis_sizes[a] for a in axes])))
    if index_groups is None:
        return rows
    return np.array([[row[i] for i in group] for row in rows for group in index_groups])


def exchange(
    ctx: Any, name: str, x: Any, groups: Groups, avals: Any = None, regions: Any = (), **attributes: Any
) -> Any:
    """A StableHLO collective among the devices of each group, on a channel of its own."""
    if name in _TELL_DEVICES:
        attributes["use_global_device_ids"] = "unit"
    return _sent(ctx, name, x, avals, regions, replica_groups=_table(groups), **attributes)


_TELL_DEVICES = frozenset({"stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter"})


def permuted(ctx: Any, x: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    """Send the value of the first device of each pair to the second; devices that receive nothing get zeros."""
    table = _table(np.array(pairs, int).reshape(-1, 2))
    return _sent(ctx, "stablehlo.collective_permute", x, None, (), source_target_pairs=table)


def _sent(ctx: Any, name: str, x: Any, avals: Any, regions: Any, **attributes: Any) -> Any:
    ctx.forbid_repetition()
    channel = f"#stablehlo.channel_handle<handle = {ctx.module.channel()}, type = 1>"
    return ctx.op(name, x, avals=avals, regions=regions, channel_handle=channel, **attributes)


def _table(numbers: np.ndarray) -> str:
    rows, columns = numbers.shape
    return f"dense<{numbers.tolist()}> : tensor<{rows}x{columns}xi64>"


def number(value: int) -> str:
    """An i64 attribute."""
    return f"{value} : i64"


def reduction(ctx: Any, hlo: str) -> Any:
    """The region of a collective that reduces with this operation of two numbers."""
    scalar = ctx.mlir.type(ctx.aval_out.update(shape=()))
    return ctx.region([scalar, scalar], lambda a, b: [ctx.op(hlo, a, b, avals=[ctx.aval_out.update(shape=())])])


def all_reduced(ctx: Any, x: Any, groups: Groups, hlo: str) -> Any:
    """The reduction over each group, for all of it."""
    return exchange(ctx, "stablehlo.all_reduce", x, groups, regions=[reduction(ctx, hlo)])


def position(ctx: Any, name: Any) -> Any:
    """The position of this device along an axis, an int32: looked up by the number that the program knows it by."""
    ctx.forbid_repetition()
    mesh = ctx.module.manual
    if len(ctx.module.manual_axes) < len(mesh.axis_names):
        return _received_position(ctx, name)
    along = np.indices(mesh.axis_sizes)[mesh.axis_names.index(name)].reshape(-1)
    table = np.empty(mesh.size, np.int32)
    table[ctx.module.meshes.numbers(mesh)] = along
    number = ctx.op("stablehlo.partition_id", avals=[ShapedArray((), np.dtype(np.uint32))])
    whole = ctx.constant(table, ShapedArray(table.shape, table.dtype))
    one = ctx.op(
        "stablehlo.dynamic_slice", whole, number, avals=[ShapedArray((1,), table.dtype)], slice_sizes=[1]
    )
    return ctx.op("stablehlo.reshape", one)


def _received_position(ctx: Any, name: Any) -> Any:
    """The position, where XLA gives programs no number as the compiler splits them further: each gets its part of all.

    All along the axis send all positions, of which each gets its own, as often as there are devices.
    """
    size = ctx.module.manual.shape[name]
    every, one = ShapedArray((size,), np.dtype(np.int32)), ShapedArray((1,), np.dtype(np.int32))
    add = reduction(ctx, "stablehlo.add")
    whole, groups = ctx.constant(np.arange(size, dtype=np.int32), every), groups_along(ctx, (name,))
    sent = exchange(ctx, "stablehlo.reduce_scatter", whole, groups, [one], [add], scatter_dimension=number(0))
    share = ctx.op("stablehlo.divide", sent, ctx.constant(np.int32(size), one), avals=[one])
    return ctx.op("stablehlo.reshape", share)
