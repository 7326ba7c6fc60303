"""Callbacks in a shard_map over some axes of its mesh, where the compiler partitions the program along the others.

XLA's host calls run on one device or on all. So a debug callback is called by the first device along the other axes, in
a nested shard_map over them. A callback with results or side effects is refused, because the number of its calls would
depend on the partitioning.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from xlamini.core import PartitionSpec, Values
from xlamini.primitives.collectives.axes import axis_index
from xlamini.transforms.cond.api import cond
from xlamini.transforms.shard_map.api import shard_map
from xlamini.transforms.shard_map.manual_axes import manual_axes


def other_axes(ctx: Any) -> list[Any]:
    """The Auto axes along which the compiler partitions the current manual computation."""
    mesh = ctx.module.manual
    if mesh is None:
        return []
    return [name for name in mesh.axis_names if name not in ctx.module.manual_axes and mesh.shape[name] > 1]


def refuse(face: str, others: Values) -> NoReturn:
    """NotImplementedError for a callback with effects."""
    names = ", ".join(map(repr, others))
    raise NotImplementedError(
        f"{face}: it cannot be called in a shard_map over some axes of the mesh, as the compiler splits the program "
        f"along {names} too; add them to axis_names, or call it outside"
    )


def call_by_first(ctx: Any, call: Callable[..., Any], operands: Values, others: Values) -> None:
    """Lower `call`, of the operands of the current equation, for the first device along the other axes."""
    mesh = ctx.module.manual

    def of_each(*parts: Any) -> tuple[()]:
        place = sum(axis_index(name) for name in others)
        cond(place == 0, lambda *xs: [*call(*xs)], lambda *xs: [], *parts)
        return ()

    on_each = shard_map(of_each, mesh=mesh, in_specs=PartitionSpec(), out_specs=(), axis_names=set(others))
    with manual_axes({"mesh": mesh, "manual": ctx.module.manual_axes, "check_vma": True}):
        ctx.inline(on_each, *operands)
