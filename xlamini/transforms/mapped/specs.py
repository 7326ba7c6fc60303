"""PartitionSpecs of what a program for one device takes and returns: local types, and global ones."""
from __future__ import annotations

from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.partition_spec import PartitionSpec
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding

Spec = PartitionSpec


def axes_of(spec: Spec) -> frozenset[Any]:
    """The axes that a spec names."""
    return frozenset(name for names in spec.names_of(len(spec)) for name in names)


def local_aval(aval: ShapedArray, mesh: Mesh, spec: Spec) -> ShapedArray:
    """The type of the part that one device holds; ShardingError where there are no even parts."""
    shape = NamedSharding(mesh, spec).shard_shape(aval.shape)
    return aval.update(shape=shape).varying(axes_of(spec))


def global_aval(aval: ShapedArray, mesh: Mesh, spec: Spec) -> ShapedArray:
    """The type of the whole, of which each device returns a part."""
    names = spec.names_of(aval.ndim)
    shape = [size * _parts(mesh, axes) for size, axes in zip(aval.shape, names, strict=True)]
    return aval.update(shape=tuple(shape)).varying(frozenset())


def _parts(mesh: Mesh, axes: tuple[Any, ...]) -> int:
    count = 1
    for name in axes:
        count *= mesh.shape[name]
    return count


def stacked_spec(aval: ShapedArray, mesh: Mesh) -> Spec:
    """The spec of a value of one dimension or more that varies as its type says: devices' parts one after the other."""
    axes = tuple(name for name in mesh.axis_names if name in aval.vma)
    return PartitionSpec(axes) if axes else PartitionSpec()


def moved(spec: Spec, dim: int | None) -> Spec:
    """The spec of the same array with a further dimension at `dim`, which is not split."""
    if dim is None:
        return spec
    entries = [*spec.partitions, *[None] * (dim - len(spec))]
    return PartitionSpec(*entries[:dim], None, *entries[dim:])
