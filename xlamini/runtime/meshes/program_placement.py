"""The placement of a program over a mesh: its devices, and the shardings of its inputs and outputs.

A `DeviceOrMesh` is either this or, for a program on one device, the device.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _hlo

from xlamini.core import PartitionSpec, ShapedArray, ShardingError
from xlamini.runtime.arrays.memory_space import in_space_of
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.meshes.mesh import Mesh, with_axes
from xlamini.runtime.meshes.named_sharding import NamedSharding, split_in_type
from xlamini.runtime.sharding import on_device


class MeshPlacement(NamedTuple):
    """A mesh, and the shardings of a program's inputs and outputs.

    An input without a sharding is replicated; for an output without one the compiler chooses.
    """

    mesh: Mesh
    ins: tuple[NamedSharding | None, ...] = ()
    outs: tuple[NamedSharding | None, ...] = ()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices in the order in which the program numbers them."""
        return tuple(self.mesh.devices.flat)

    @property
    def platform(self) -> str:
        """The platform of the devices."""
        return self.devices[0].platform

    @property
    def client(self) -> Any:
        """The PJRT client of the devices."""
        return self.devices[0].client

    def of_inputs(self, count: int) -> list[NamedSharding]:
        """The shardings of a program's `count` inputs."""
        replicated = replicated_on(self)
        return [replicated if s is None else s for s in _padded(self.ins, count)]

    def of_outputs(self, count: int) -> list[NamedSharding | None]:
        """The requested shardings of a program's `count` outputs; None where the compiler chooses."""
        return _padded(self.outs, count)

    def of_typed_outputs(self, avals: Sequence[ShapedArray]) -> list[NamedSharding | None]:
        """The requested shardings of outputs, completed from their types where the mesh has explicit axes."""
        requested = self.of_outputs(len(avals))
        if not self.mesh.explicit_axes:
            return requested
        return [_as_typed(self.mesh, a) if s is None else s for s, a in zip(requested, avals, strict=True)]


class AbsentPlacement(MeshPlacement):
    """A placement over an AbstractMesh: a program is lowered for its devices, which are not here, not compiled."""

    @property
    def devices(self) -> tuple[Device, ...]:
        return ()

    @property
    def platform(self) -> str:
        kind = self.mesh.abstract_mesh.abstract_device
        assert kind is not None  # whoever makes one knows the platform
        return kind.platform

    @property
    def client(self) -> Any:
        return None


DeviceOrMesh = Device | MeshPlacement
"""The placement of a program."""


def _padded(shardings: Sequence[NamedSharding | None], count: int) -> list[NamedSharding | None]:
    return [*shardings, *[None] * (count - len(shardings))]


def _as_typed(mesh: Mesh, aval: ShapedArray) -> NamedSharding:
    """The sharding in a type; over an AbstractMesh if the compiler chooses along some axes."""
    if aval.explicit_sharding is not None:
        mesh = with_axes(mesh, aval.explicit_sharding.mesh)
    return NamedSharding(mesh if mesh.are_all_axes_explicit else mesh.abstract_mesh, aval.sharding.spec)


def placed_avals(place: Any, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The types of a program's outputs, with the shardings of its placement."""
    if not isinstance(place, MeshPlacement):
        return list(avals)
    requested = place.of_outputs(len(avals))
    pairs = zip(requested, avals, strict=True)
    return [a if s is None else a.with_sharding(split_in_type(s, a.ndim)) for s, a in pairs]


def devices_of(place: Any) -> tuple[Device, ...]:
    """The devices of a placement."""
    return place.devices if isinstance(place, MeshPlacement) else (place,)


def replicated_on(place: DeviceOrMesh) -> Any:
    """The sharding of an array that is replicated over a placement's devices."""
    return NamedSharding(place.mesh, PartitionSpec()) if isinstance(place, MeshPlacement) else on_device(place)


def input_shardings(place: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """The shardings of a program's inputs."""
    given = place.of_inputs(len(avals)) if isinstance(place, MeshPlacement) else [on_device(place)] * len(avals)
    return [in_space_of(s, a) for s, a in zip(given, avals, strict=True)]


def output_shardings(place: Any, avals: Sequence[ShapedArray], loaded: Any) -> list[Any]:
    """The shardings of a compiled program's outputs: as requested, else as the compiler chose."""
    found = _chosen(place, avals, loaded) if isinstance(place, MeshPlacement) else [on_device(place)] * len(avals)
    return [in_space_of(s, a) for s, a in zip(found, avals, strict=True)]


def _chosen(place: MeshPlacement, avals: Sequence[ShapedArray], loaded: Any) -> list[Any]:
    requested = [s if s is not None and isinstance(s.mesh, Mesh) else None for s in place.of_outputs(len(avals))]
    if place.mesh.size == 1:
        return [_summed(replicated_on(place), a) if s is None else s for s, a in zip(requested, avals, strict=True)]
    chosen = loaded.get_output_shardings()[: len(avals)]  # XLA reports one even for no outputs
    return [
        a or _summed(named_sharding(_hlo.HloSharding.from_proto(m), place.mesh, aval.ndim), aval)
        for a, m, aval in zip(requested, chosen, avals, strict=True)
    ]


def _summed(sharding: NamedSharding, aval: ShapedArray) -> NamedSharding:
    """An output's sharding, unreduced and reduced as its type is."""
    split = aval.explicit_sharding
    if split is None or not (split.unreduced or split.reduced):
        return sharding
    return sharding.update(
        spec=PartitionSpec(*sharding.spec.partitions, unreduced=split.unreduced, reduced=split.reduced)
    )


def named_sharding(found: _hlo.HloSharding, mesh: Mesh, ndim: int) -> NamedSharding:
    """XLA's sharding as a NamedSharding over a mesh; ShardingError if no PartitionSpec is equivalent."""
    if found.is_replicated():
        return NamedSharding(mesh, PartitionSpec())
    tiles, grid = found.tile_assignment_dimensions()[:ndim], _grid(found, ndim)
    for spec in _specs(mesh, tiles):
        sharding = NamedSharding(mesh, spec)
        if np.array_equal(_grid(sharding._to_xla_hlo_sharding(ndim), ndim), grid):
            return sharding
    raise ShardingError(
        f"the compiler splits an output of {ndim} dimensions as {found}, which no PartitionSpec of {mesh} says; ask "
        "for a sharding with out_shardings or with_sharding_constraint"
    )


def _grid(sharding: _hlo.HloSharding, ndim: int) -> np.ndarray:
    """The devices that hold each tile."""
    devices = np.array(sharding.tile_assignment_devices())
    return np.sort(devices.reshape(*sharding.tile_assignment_dimensions()[:ndim], -1), axis=-1)


def _specs(mesh: Mesh, tiles: Sequence[int]) -> Iterator[PartitionSpec]:
    """All specs that split dimensions into these numbers of tiles, without trailing None entries."""
    for entries in _entries(mesh, list(tiles), ()):
        while entries and entries[-1] is None:
            entries = entries[:-1]
        yield PartitionSpec(*entries)


def _entries(mesh: Mesh, tiles: list[int], used: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if not tiles:
        yield ()
        return
    free = [name for name in mesh.axis_names if name not in used and mesh.shape[name] > 1]
    for count in range(len(free) + 1):
        for names in itertools.permutations(free, count):
            if np.prod([mesh.shape[name] for name in names], dtype=int) == tiles[0]:
                for rest in _entries(mesh, tiles[1:], (*used, *names)):
                    yield (names or None, *rest)
