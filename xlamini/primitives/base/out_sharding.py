"""The argument `out_sharding` of functions: how their results are to be split over a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import aval_of, tree_map
from xlamini.core.errors import ShardingTypeError
from xlamini.core.sharding.partial_sums import sums_left_open, sums_of
from xlamini.core.sharding.propagation import compiler_decides
from xlamini.core.tracing.state import state
from xlamini.primitives.placement.sharding_constraint import moved_to
from xlamini.runtime import NamedSharding, named
from xlamini.runtime.meshes.current_mesh import as_here
from xlamini.runtime.meshes.named_sharding import manual_axis_in, split_in_type, type_sharding


def in_sharding(out_sharding: Any, fun: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """The arrays `fun(*operands, **options)`, sharded as `out_sharding` says, even where operands leave that undefined.

    Raises what `checked_sharding` does, and ShardingError where a result cannot be split so.
    """
    there = checked_sharding(fun.__name__.strip("_"), out_sharding)
    with compiler_decides():
        outs = fun(*operands, **options)
    return tree_map(lambda x: split_as(x, there), outs)


def summed_in_sharding(out_sharding: Any, fun: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """The array of a function that sums over dimensions, as by `in_sharding`; along unreduced axes it is not taken.

    ShardingTypeError unless the dimensions that are summed over are split along these axes.
    """
    there = checked_sharding(fun.__name__.strip("_"), out_sharding)
    terms = there.spec.unreduced
    if not terms:
        return in_sharding(there, fun, *operands, **options)
    with compiler_decides(), sums_left_open(terms):
        out = fun(*operands, **options)
    if sums_of(aval_of(out)).unreduced != terms:
        axes = ", ".join(sorted(map(repr, terms)))
        raise ShardingTypeError(
            f"{fun.__name__.strip('_')}: out_sharding is {there.spec}, but the result is a sum of one term on each "
            f"device along {axes} only where what is summed over is split along {axes} in every operand; "
            "xlamini.reshard the operands so, or name other axes"
        )
    return out if aval_of(out).explicit_sharding is split_in_type(there, aval_of(out).ndim) else split_as(out, there)


def split_as(x: Any, there: NamedSharding) -> Any:
    """An array in a sharding; ShardingError where it cannot be split so."""
    there.shard_shape(aval_of(x).shape)
    return moved_to(x, there)


def checked_sharding(name: str, out_sharding: Any) -> NamedSharding:
    """The sharding given to the function `name`; a PartitionSpec refers to the current mesh.

    TypeError for what is neither, ShardingError for a name that the mesh does not have, ValueError where no mesh is set
    or the axis is one along which the program is written for one device.
    """
    there = as_here(named(out_sharding, f"{name}: out_sharding is"))
    if not isinstance(there, NamedSharding):
        raise TypeError(
            f"{name}: out_sharding must be a PartitionSpec or a NamedSharding, got {out_sharding!r}; write P('x'), or "
            "xlamini.device_put the result"
        )
    axis = manual_axis_in(there)
    if axis is not None:
        raise ValueError(
            f"{name}: out_sharding is {there.spec}, but along the axis {axis!r} each device has values of its own "
            "here, as within shard_map; leave it out, and say it in out_specs"
        )
    return there


def sharding_like(x: Any) -> NamedSharding | None:
    """The sharding of an array: in a traced function that of its aval; None if it has none."""
    if state.builder is None:
        own = getattr(x, "sharding", None) if hasattr(x, "aval") else None
        return own if type(own) is NamedSharding else None
    there = as_here(type_sharding(aval_of(x).explicit_sharding))
    return there if there is not None and there.mesh.explicit_axes else None
