"""NamedSharding: the sharding of an array over a mesh by a PartitionSpec.

The class is jaxlib's, so that C++ dispatch can compare instances; its methods are defined here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from jaxlib import _hlo

from xlamini.core import AbstractMesh, AvalSharding, PartitionSpec, ShapedArray, ShardingError, memoised
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.memory_space import space_of_kind
from xlamini.core.sharding.abstract_mesh import AxesOfMesh, parts_along
from xlamini.core.sharding.aval_sharding import split_of
from xlamini.core.sizes.expression import SymbolicSize, is_less
from xlamini.runtime import jaxlib_types
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.placeholders import Placeholders
from xlamini.runtime.sharding import Index

NamedSharding = jaxlib_types.NamedSharding
"""How an array lies on a mesh: a PartitionSpec names an axis of the mesh, or None, for each dimension.

>>> mesh = xlamini.sharding.AbstractMesh((4,), ("x",))
>>> NamedSharding(mesh, xlamini.P("x", None)).shard_shape((8, 2))
(2, 2)
>>> mesh = xlamini.make_mesh((1,), ("x",))
>>> xlamini.device_put(jnp.ones((8, 2)), NamedSharding(mesh, xlamini.P("x"))).sharding.spec
P('x',)
"""


@api_boundary
def _check_spec(mesh: Any, spec: Any) -> None:
    """The check that C++ calls when a NamedSharding is made: the spec names axes of the mesh, each once."""
    if not isinstance(mesh, AxesOfMesh):
        raise TypeError(f"NamedSharding: mesh must be a Mesh, got {mesh!r}; xlamini.make_mesh makes one")
    if not isinstance(spec, PartitionSpec):
        raise TypeError(f"NamedSharding: spec must be a PartitionSpec, got {spec!r}; write P('x', None)")
    _check_names(mesh, spec)


@memoised("sharding: valid specs", 4096)
def _check_names(mesh: AxesOfMesh, spec: PartitionSpec) -> None:
    names = [name for entry in spec.names_of(len(spec)) for name in entry]
    _check_sums(mesh, spec)
    for name in names:
        if name not in mesh.axis_names:
            raise ShardingError(f"{spec} names the axis {name!r}, which the mesh does not have; it has {_axes(mesh)}")
        if names.count(name) > 1:
            raise ShardingError(f"{spec} names the axis {name!r} twice; an axis can split one dimension only")


def _check_sums(mesh: AxesOfMesh, spec: PartitionSpec) -> None:
    for name in sorted(spec.unreduced | spec.reduced, key=str):
        if name not in mesh.axis_names:
            raise ShardingError(f"{spec} names the axis {name!r}, which the mesh does not have; it has {_axes(mesh)}")
        if name in mesh.auto_axes:
            raise ShardingError(
                f"{spec} names the axis {name!r}, which is of type Auto; a value is unreduced or reduced along axes of "
                "type Explicit, which types of values show: make the mesh with axis_types=AxisType.Explicit"
            )


def _axes(mesh: AxesOfMesh) -> str:
    return ", ".join(f"{name!r} of size {size}" for name, size in mesh.shape_tuple)


def _factors(self: NamedSharding, ndim: int) -> list[int]:
    """The number of parts of each dimension."""
    return [parts_along(self.mesh, names) for names in self.spec.names_of(ndim)]


@memoised("sharding: shapes of shards", 4096)
def _shard_shape(self: NamedSharding, global_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the part that one device holds; ShardingError if a dimension cannot be split evenly.

    A symbolic size may be one that can.
    """
    shape = global_shape
    if len(self.spec) > len(shape):
        raise ShardingError(
            f"{self.spec} speaks of {len(self.spec)} dimensions, but the array has {len(shape)}, of shape {shape}; "
            "leave entries out at its end"
        )
    split = list(zip(shape, _factors(self, len(shape)), strict=True))
    for i, (size, parts) in enumerate(split):
        left = size % parts
        if left != 0 and (type(left) is not SymbolicSize or is_less(0, left)):
            raise ShardingError(
                f"dimension {i} of an array of shape {shape} has size {size}, which cannot be split into the {parts} "
                f"parts that {self.spec} asks for on a mesh with {_axes(self.mesh)}; pad it to "
                f"{-(-size // parts) * parts}, or leave the dimension whole"
            )
    return tuple(size // parts for size, parts in split)


@memoised("sharding: parts of devices", 4096)
def _devices_indices_map(self: NamedSharding, global_shape: tuple[int, ...]) -> dict[Device, Index]:
    """The index of each device's shard; ShardingError for an unreduced array, which has a term on each device."""
    if self.spec.unreduced:
        raise ShardingError(
            f"an array with the sharding {self.spec} has a term of a sum on each device, so that no device has its "
            "elements; take the sum first with xlamini.reshard(x, P()), or read the terms: x.addressable_shards[i].data"
        )
    part = _shard_shape(self, global_shape)
    mesh, names = self.mesh, self.spec.names_of(len(part))
    indices = {}
    for position, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, position, strict=True))
        numbers = [_number([at[n] for n in axes], [mesh.shape[n] for n in axes]) for axes in names]
        indices[device] = tuple(map(_slice, numbers, part, global_shape))
    return indices


def _number(position: list[int], sizes: list[int]) -> int:
    """The shard number of a position along some mesh axes, in row-major order."""
    number = 0
    for at, size in zip(position, sizes, strict=True):
        number = number * size + at
    return number


def _slice(number: int, length: int, whole: int) -> slice:
    return slice(None) if length == whole else slice(number * length, (number + 1) * length)


@memoised("sharding: parts of devices here", 4096)
def _addressable_devices_indices_map(self: NamedSharding, global_shape: tuple[int, ...]) -> dict[Device, Index]:
    """The index of the shard of each device of this process."""
    every = _devices_indices_map(self, global_shape)
    return {d: every[d] for d in self._internal_device_list.addressable_device_list}


def _is_fully_replicated(self: NamedSharding) -> bool:
    """Whether every device holds all of the array."""
    return not self.spec.unreduced and all(parts == 1 for parts in _factors(self, len(self.spec)))


def _replicated_axes(self: NamedSharding) -> frozenset[Any]:
    """The axes of the mesh along which all devices hold the same."""
    return frozenset(self.mesh.axis_names) - self.spec.axes - self.spec.unreduced


def _check_compatible_aval(self: NamedSharding, aval_shape: tuple[int, ...]) -> None:
    """ShardingError if the spec speaks of more dimensions than an array of this shape has."""
    if len(self.spec) > len(aval_shape):
        _shard_shape(self, aval_shape)


@memoised("sharding: XLA's form", 4096)
def _to_xla_hlo_sharding(self: NamedSharding, num_dimensions: int) -> _hlo.HloSharding:
    """The sharding as XLA's HloSharding: tiles over the device grid, terms of sums, replicated along the other axes."""
    mesh, names = self.mesh, self.spec.names_of(num_dimensions)
    if _is_fully_replicated(self):
        return _hlo.HloSharding.replicate()
    used = [name for axes in names for name in axes]
    terms = [name for name in mesh.axis_names if name in self.spec.unreduced]
    rest = [name for name in mesh.axis_names if name not in used and name not in terms]
    groups = [(_hlo.OpSharding_Type.UNREDUCED, terms), (_hlo.OpSharding_Type.REPLICATED, rest)]
    left_over = [(kind, parts) for kind, axes in groups if (parts := parts_along(mesh, axes)) > 1]
    dims = [*_factors(self, num_dimensions), *(parts for _, parts in left_over)]
    perm = [mesh.axis_names.index(name) for name in (*used, *terms, *rest)]
    return _hlo.HloSharding.iota_tile(dims, mesh.axis_sizes, perm, [kind for kind, _ in left_over])


def _update(self: NamedSharding, **changes: Any) -> NamedSharding:
    """A copy with another mesh, spec or memory kind."""
    fields = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self._memory_kind}
    return NamedSharding(**{**fields, **changes})


def _equals(self: NamedSharding, other: object) -> bool:
    if not isinstance(other, NamedSharding):
        return NotImplemented
    if self is other:
        return True
    return self.mesh == other.mesh and self.spec == other.spec and self._memory_kind == other._memory_kind


def _repr(self: NamedSharding) -> str:
    memory = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
    return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{memory})"


def manual_axis_in(sharding: NamedSharding) -> Any:
    """The first axis of type Manual that a sharding's spec names; None if there is none."""
    return next((name for name in sharding.mesh.manual_axes if name in sharding.spec.axes), None)


def with_devices(sharding: Any, mesh: Any) -> Any:
    """A sharding over an AbstractMesh as one over the devices of a mesh with the same axes; others as they are."""
    if mesh is None or not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, AbstractMesh):
        return sharding
    return sharding.update(mesh=mesh) if mesh.shape_tuple == sharding.mesh.shape_tuple else sharding


def split_in_type(sharding: Any, ndim: int) -> AvalSharding | None:
    """The sharding in the type of an array placed so: its split along axes of type Explicit, or None."""
    return split_of(sharding.mesh, sharding.spec, ndim) if type(sharding) is NamedSharding else None


def typed_by(sharding: Any, aval: ShapedArray) -> ShapedArray:
    """The type of an array with this sharding: its split along explicit axes, and its memory space."""
    if aval.explicit_sharding is not None or type(sharding) is NamedSharding:
        aval = aval.with_sharding(split_in_type(sharding, aval.ndim))
    return aval.in_space(space_of_kind(sharding._memory_kind))


def without_trailing_none(sharding: Any) -> Any:
    """A sharding without trailing None entries in its spec, so that equivalent specs share one program."""
    return _strip_trailing_none(sharding) if type(sharding) is NamedSharding else sharding


@memoised("sharding: normal forms", 4096)
def _strip_trailing_none(sharding: NamedSharding) -> NamedSharding:
    entries = sharding.spec.partitions
    while entries and entries[-1] is None:
        entries = entries[:-1]
    spec = sharding.spec
    return _update(sharding, spec=PartitionSpec(*entries, unreduced=spec.unreduced, reduced=spec.reduced))


def type_sharding(split: AvalSharding | None) -> NamedSharding | None:
    """The sharding in a type, as a NamedSharding over an AbstractMesh; None if nothing is split."""
    return None if split is None else NamedSharding(split.mesh, split.spec)


_MEMBERS: dict[str, Any] = {
    "shard_shape": lambda self, global_shape: _shard_shape(self, tuple(global_shape)),
    "devices_indices_map": lambda self, global_shape: _devices_indices_map(self, tuple(global_shape)),
    "addressable_devices_indices_map": (
        lambda self, global_shape: _addressable_devices_indices_map(self, tuple(global_shape))
    ),
    "is_fully_replicated": cached_property(_is_fully_replicated),
    "replicated_axes": property(_replicated_axes),
    "check_compatible_aval": _check_compatible_aval,
    "_hash": cached_property(lambda self: hash((self.mesh, self.spec, self._memory_kind))),
    "with_memory_kind": lambda self, kind: _update(self, memory_kind=kind),
    "update": _update,
    "_to_xla_hlo_sharding": _to_xla_hlo_sharding,
    "__eq__": _equals,
    "__hash__": lambda self: self._hash,
    "__repr__": _repr,
    "__reduce__": lambda self: (NamedSharding, (self.mesh, self.spec, self._memory_kind)),
}

for _name, _member in _MEMBERS.items():
    setattr(NamedSharding, _name, _member)
    if isinstance(_member, cached_property):
        _member.__set_name__(NamedSharding, _name)


# C++ imports this check from a module of jax, once, when the first sharding is made.
with Placeholders({"jax._src.named_sharding": {"check_pspec": _check_spec}}):
    NamedSharding(AbstractMesh((), ()), PartitionSpec())
