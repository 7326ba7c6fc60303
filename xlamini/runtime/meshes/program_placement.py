"""Spread: a program that runs on all devices of a mesh, and where its inputs and outputs lie.

It stands where a program on one device has that device.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _hlo

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShardingError
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding, split_by
from xlamini.runtime.sharding import on_device


class Spread(NamedTuple):
    """A mesh, and the shardings of a program's first inputs and of its outputs.

    An input without one lies whole on every device; of an output without one the compiler decides.
    """

    mesh: Mesh
    ins: tuple[NamedSharding | None, ...] = ()
    outs: tuple[NamedSharding | None, ...] = ()

    @property
    def devices(self) -> tuple[Device, ...]:
        """Its devices in the order in which the program numbers them."""
        return tuple(self.mesh.devices.flat)

    @property
    def platform(self) -> str:
        """The platform of its devices."""
        return self.devices[0].platform

    @property
    def client(self) -> Any:
        """What its devices belong to."""
        return self.devices[0].client

    def of_inputs(self, count: int) -> list[NamedSharding]:
        """The shardings of a program's `count` inputs."""
        whole = whole_on(self)
        return [whole if s is None else s for s in _padded(self.ins, count)]

    def of_outputs(self, count: int) -> list[NamedSharding | None]:
        """The shardings that are asked for a program's `count` outputs."""
        return _padded(self.outs, count)

    def of_typed(self, avals: Sequence[ShapedArray]) -> list[NamedSharding | None]:
        """The same; where the mesh has explicit axes and none is asked for, an output lies as its type says."""
        asked = self.of_outputs(len(avals))
        if not self.mesh.explicit_axes:
            return asked
        return [_as_typed(self.mesh, a) if s is None else s for s, a in zip(asked, avals, strict=True)]


Place = Device | Spread
"""Where a program runs."""


def _padded(shardings: Sequence[NamedSharding | None], count: int) -> list[NamedSharding | None]:
    return [*shardings, *[None] * (count - len(shardings))]


def _as_typed(mesh: Mesh, aval: ShapedArray) -> NamedSharding:
    """The sharding that a type says; over an AbstractMesh where the compiler decides along other axes."""
    return NamedSharding(mesh if mesh.are_all_axes_explicit else mesh.abstract_mesh, aval.sharding.spec)


def as_placed(place: Any, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The types of a program's outputs, split as its place says."""
    if not isinstance(place, Spread):
        return list(avals)
    asked = place.of_outputs(len(avals))
    return [a if s is None else a.divided(split_by(s, a.ndim)) for s, a in zip(asked, avals, strict=True)]


def devices_of(place: Any) -> tuple[Device, ...]:
    """The devices of a program's place."""
    return place.devices if isinstance(place, Spread) else (place,)


def whole_on(place: Place) -> Any:
    """The sharding of an array of which each of a place's devices has all."""
    return NamedSharding(place.mesh, PartitionSpec()) if isinstance(place, Spread) else on_device(place)


def input_shardings(place: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """Where a program's inputs lie."""
    return place.of_inputs(len(avals)) if isinstance(place, Spread) else [on_device(place)] * len(avals)


def output_shardings(place: Any, avals: Sequence[ShapedArray], loaded: Any) -> list[Any]:
    """Where a compiled program's outputs lie: as asked for, or as the compiler says."""
    if not isinstance(place, Spread):
        return [on_device(place)] * len(avals)
    asked = [s if s is not None and isinstance(s.mesh, Mesh) else None for s in place.of_outputs(len(avals))]
    if place.mesh.size == 1:
        return [whole_on(place) if s is None else s for s in asked]
    made = loaded.get_output_shardings()[: len(avals)]  # XLA has one for no outputs too
    return [
        a or named_sharding(_hlo.HloSharding.from_proto(m), place.mesh, aval.ndim)
        for a, m, aval in zip(asked, made, avals, strict=True)
    ]


def named_sharding(found: _hlo.HloSharding, mesh: Mesh, ndim: int) -> NamedSharding:
    """XLA's sharding of an array in terms of a mesh; ShardingError if no PartitionSpec says the same."""
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
    """Which devices hold each tile."""
    devices = np.array(sharding.tile_assignment_devices())
    return np.sort(devices.reshape(*sharding.tile_assignment_dimensions()[:ndim], -1), axis=-1)


def _specs(mesh: Mesh, tiles: Sequence[int]) -> Iterator[PartitionSpec]:
    """Every way to split dimensions into these numbers of tiles, without entries at the end that split nothing."""
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
