"""Conversions between the global types of shard_map's operands and results, their specs, and the types of shards."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import (
    AbstractMesh,
    Avals,
    AvalSharding,
    Axis,
    Params,
    PartitionSpec,
    ShapedArray,
    ShardingError,
    split_into,
)
from xlamini.core.program.hi_types import HiAval
from xlamini.core.sharding.abstract_mesh import parts_along
from xlamini.core.sharding.aval_sharding import split_of
from xlamini.core.sharding.partial_sums import sums_of
from xlamini.runtime import NamedSharding
from xlamini.runtime.meshes.current_mesh import with_manual
from xlamini.runtime.meshes.mesh import AnyMesh
from xlamini.transforms.shard_map.hi_specs import axes_of, global_hi, is_hi_spec, local_hi
from xlamini.transforms.shard_map.manual_axes import manual_here

Spec = Any
"""A PartitionSpec, or, of a value of a user's type, his spec."""


def local_aval(aval: ShapedArray, params: Params, spec: Spec) -> ShapedArray:
    """The type of one device's shard; ShardingError if the spec does not divide the array evenly."""

    def of_array(part: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        return local_array(part, params["mesh"], params["manual"], spec)

    return local_hi(aval, spec, params, of_array) if isinstance(aval, HiAval) else of_array(aval, spec)


def local_array(aval: ShapedArray, mesh: AnyMesh, manual: frozenset[Any], spec: PartitionSpec) -> ShapedArray:
    """The type of one device's shard of an array."""
    shape = NamedSharding(mesh, spec).shard_shape(aval.shape)
    split = _within(aval.explicit_sharding, mesh, manual)
    if spec.unreduced or spec.reduced:
        whole = split or AvalSharding(_types(mesh, manual), ((),) * aval.ndim)
        split = whole.with_sums(spec.unreduced, spec.reduced)
    return aval.update(shape=shape, explicit_sharding=split).varying(aval.vma | spec.axes)


def global_aval(
    aval: ShapedArray, mesh: AnyMesh, manual: frozenset[Any], check_vma: bool, spec: Spec
) -> ShapedArray:
    """The type of the global value, from the type of one device's shard."""

    def of_array(part: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        return global_array(part, mesh, manual, spec)

    if isinstance(aval, HiAval):
        return global_hi(aval, mesh, manual, check_vma, spec, of_array)
    return of_array(aval, spec)


def global_array(aval: ShapedArray, mesh: AnyMesh, manual: frozenset[Any], spec: PartitionSpec) -> ShapedArray:
    """The type of the global array."""
    names = spec.names_of(aval.ndim)
    if len(names) > aval.ndim:
        raise ShardingError(f"shard_map: {spec} is given for a part of type {aval.str_short()}; give it a dimension")
    shape = [size * parts_along(mesh, axes) for size, axes in zip(aval.shape, names, strict=True)]
    split = around(aval.explicit_sharding, mesh, spec, aval.ndim)
    return aval.update(shape=tuple(shape), explicit_sharding=split).varying(aval.vma - manual)


def around(inside: AvalSharding | None, mesh: AnyMesh, spec: Spec, ndim: int) -> AvalSharding | None:
    """The sharding in the type of the global array: the spec's explicit axes, and the sharding of the shards' type."""
    explicit = _types(mesh, frozenset())
    named = split_of(explicit, spec, ndim)
    entries = [s.entries for s in (named, inside) if s is not None]
    if not entries:
        return None
    return split_into(
        explicit, tuple(sum(each, ()) for each in zip(*entries, strict=True)), spec.unreduced, spec.reduced
    )


def placed_for(aval: ShapedArray, mesh: AnyMesh, manual: frozenset[Any], spec: Spec) -> AvalSharding | None:
    """The sharding that an argument is moved to: its spec's along manual axes, its own along others."""
    if isinstance(aval, HiAval):
        return None
    return around(_within(aval.explicit_sharding, mesh, manual), mesh, spec, aval.ndim)


def divided_along(axis: Axis, params: Params, is_used: bool) -> tuple[Any, ...]:
    """The manual axes that divide vmap's axis among the devices, which are those of `spmd_axis_name`.

    There are none if the axis `is_used` by its name in the program: each device needs all examples then.
    ValueError if a spec has such an axis already, or the number of examples cannot be divided.
    """
    along = tuple(name for name in axis.along if name in params["manual"])
    for argument in ("in_specs", "out_specs"):
        used = [spec for spec in params[argument] if axes_of(spec).intersection(along)]
        if used:
            raise ValueError(
                f"vmap spmd_axis_name cannot appear in shard_map {argument}: vmap shards the mapped axis along "
                f"{along}, and so does {used[0]} a dimension; name another axis of the mesh"
            )
    devices = parts_along(params["mesh"], along)
    if not is_used and axis.size % devices:
        raise ShardingError(
            f"vmap: spmd_axis_name shards {axis.size} examples along {along}, over {devices} devices, in a shard_map; "
            "give a number of examples that they divide, or no spmd_axis_name"
        )
    return () if is_used else along


def axis_within(axis: Axis, along: tuple[Any, ...], params: Params) -> Axis:
    """vmap's axis inside of the shard_map, which divides it `along` some manual axes."""
    mesh, manual = params["mesh"], params["manual"]
    return axis._replace(
        size=axis.size // parts_along(mesh, along),
        name=None if axis.name in manual else axis.name,  # inside, the mesh axis shadows vmap's axis of this name
        along=tuple(name for name in axis.along if name not in manual),
        placed=_placed_within(axis.placed, mesh, manual),
        vma=axis.vma.union(along),
    )


def _placed_within(placed: Any, mesh: AnyMesh, manual: frozenset[Any]) -> Any:
    """The sharding of vmap's axis inside of the shard_map: the outer one, or None if it is along a manual axis."""
    if placed is None or manual.intersection(placed[1]):
        return None
    return _types(mesh, manual), placed[1]


def said_by(aval: ShapedArray, manual: frozenset[Any]) -> Spec:
    """The spec of an argument's type, along the manual axes."""
    entries = () if aval.explicit_sharding is None else aval.explicit_sharding.entries
    sums = sums_of(aval)
    return PartitionSpec(
        *[tuple(n for n in names if n in manual) for names in entries],
        unreduced=sums.unreduced & manual,
        reduced=sums.reduced & manual,
    )


def _within(split: AvalSharding | None, mesh: AnyMesh, manual: frozenset[Any]) -> AvalSharding | None:
    """The sharding of a shard's type: along the axes that are not manual."""
    return split and split.on(_types(mesh, manual))


def _types(mesh: AnyMesh, manual: frozenset[Any]) -> AbstractMesh:
    """The abstract mesh in the types of values, where `manual` axes are manual besides the current ones."""
    return with_manual(mesh.abstract_mesh, manual | manual_here())


def stacked_spec(aval: ShapedArray, mesh: AnyMesh, manual: frozenset[Any], check_vma: bool) -> Spec:
    """The spec of a residual: dimension 0 is sharded along the axes on which its type varies."""
    if isinstance(aval, HiAval) and aval.vma & manual:
        names = tuple(name for name in mesh.axis_names if name in manual)
        return aval.ty.nospec(mesh, check_vma, names)
    axes = tuple(name for name in mesh.axis_names if name in aval.vma & manual)
    unreduced, reduced = sums_of(aval)
    return PartitionSpec(*([axes] if axes else []), unreduced=unreduced & manual, reduced=reduced & manual)


def moved(spec: Spec, dim: Any, along: tuple[Any, ...] = ()) -> Spec:
    """The spec with a further dimension at `dim`, sharded `along` these axes.

    For a whole value of a user's type it is P() still.
    """
    if dim is None or not (is_hi_spec(spec) or type(dim) is int):
        return spec
    if is_hi_spec(spec):
        raise NotImplementedError(
            f"vmap of a shard_map that shards a mapped value of a user's type, by {spec!r}; use vmap inside of it"
        )
    return spec.inserted(dim, along or None)


def allowed_axes(
    avals: Avals, specs: Sequence[Spec], manual: frozenset[Any]
) -> tuple[frozenset[Any], ...]:
    """The axes along which outputs may vary: the axes of their specs, and the manual axes of an outer shard_map."""
    return tuple(axes_of(spec) | (aval.vma - manual) for aval, spec in zip(avals, specs, strict=True))
