"""PartitionSpecs of what a program for one device takes and returns: local types, and global ones."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.sharding.abstract_mesh import AbstractMesh, parts_along
from xlamini.core.sharding.aval_sharding import Split, split_into, split_of
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.runtime.meshes.current_mesh import with_manual
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding
from xlamini.transforms.shard_map.manual_axes import manual_here

Spec = PartitionSpec


def local_aval(aval: ShapedArray, mesh: Mesh, manual: frozenset[Any], spec: Spec) -> ShapedArray:
    """The type of the part that one device holds; ShardingError where there are no even parts."""
    shape = NamedSharding(mesh, spec).shard_shape(aval.shape)
    split = _within(aval.split, mesh, manual)
    return aval.update(shape=shape, split=split).varying(aval.vma | spec.axes)


def global_aval(aval: ShapedArray, mesh: Mesh, manual: frozenset[Any], spec: Spec) -> ShapedArray:
    """The type of the whole, of which each device along the `manual` axes returns a part."""
    names = spec.names_of(aval.ndim)
    shape = [size * parts_along(mesh, axes) for size, axes in zip(aval.shape, names, strict=True)]
    split = around(aval.split, mesh, spec, aval.ndim)
    return aval.update(shape=tuple(shape), split=split).varying(aval.vma - manual)


def around(inside: Split | None, mesh: Mesh, spec: Spec, ndim: int) -> Split | None:
    """How the type of the whole says that it is split: along the spec's explicit axes, and as its parts are."""
    explicit = _types(mesh, frozenset())
    named = split_of(explicit, spec, ndim)
    entries = [s.entries for s in (named, inside) if s is not None]
    return split_into(explicit, tuple(sum(each, ()) for each in zip(*entries, strict=True))) if entries else None


def placed_for(aval: ShapedArray, mesh: Mesh, manual: frozenset[Any], spec: Spec) -> Split | None:
    """How an argument is to be split: along explicit axes as its spec says, along others as it is."""
    return around(_within(aval.split, mesh, manual), mesh, spec, aval.ndim)


def placed_within(placed: Any, mesh: Mesh, manual: frozenset[Any]) -> Any:
    """What types say inside of the axis that vmap adds: it is split as outside, if not along manual axes."""
    if placed is None or manual.intersection(placed[1]):
        return None
    return _types(mesh, manual), placed[1]


def said_by(aval: ShapedArray, manual: frozenset[Any]) -> Spec:
    """The spec that an argument's type says."""
    entries = () if aval.split is None else aval.split.entries
    return PartitionSpec(*[tuple(n for n in names if n in manual) for names in entries])


def _within(split: Split | None, mesh: Mesh, manual: frozenset[Any]) -> Split | None:
    """What the type of a part says of the axes that are not manual."""
    return split and split.on(_types(mesh, manual))


def _types(mesh: Mesh, manual: frozenset[Any]) -> AbstractMesh:
    """The mesh as types speak of it here, or within a program that is written for these axes too."""
    return with_manual(mesh.abstract_mesh, manual | manual_here())


def stacked_spec(aval: ShapedArray, mesh: Mesh, manual: frozenset[Any]) -> Spec:
    """The spec of a value of one dimension or more that varies as its type says: devices' parts one after the other."""
    axes = tuple(name for name in mesh.axis_names if name in aval.vma & manual)
    return PartitionSpec(axes) if axes else PartitionSpec()


def moved(spec: Spec, dim: int | None) -> Spec:
    """The spec of the same array with a further dimension at `dim`, which is not split."""
    return spec if dim is None else spec.inserted(dim)


def allowed_axes(
    avals: Sequence[ShapedArray], specs: Sequence[Spec], manual: frozenset[Any]
) -> tuple[frozenset[Any], ...]:
    """Along which axes outputs may vary: those that their specs name, and those of a shard_map around."""
    return tuple(spec.axes | (aval.vma - manual) for aval, spec in zip(avals, specs, strict=True))
