"""Where a compiled program runs, as JSON: one device, or a mesh of them with the shardings of what it takes and gives.

    {"axes": [["x", 2, "Auto"], ["y", 4, "Auto"]], "order": [0, 1, …], "ins": [["x", null], …], "outs": […]}

`order` numbers the devices by their ids; where a program is loaded, as many of the same kind take their places.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from xlamini.core.sharding.abstract_mesh import AxisType
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding
from xlamini.runtime.meshes.program_placement import MeshPlacement, Place, devices_of


def written(place: Place, ins: Sequence[Any], outs: Sequence[Any]) -> dict[str, Any] | None:
    """The place of a program whose inputs and outputs lie so; None for one device."""
    if not isinstance(place, MeshPlacement):
        return None
    mesh = place.mesh
    numbers = {d.id: i for i, d in enumerate(sorted(devices_of(place), key=lambda d: d.id))}
    return {
        "axes": [[*axis, kind.name] for axis, kind in zip(mesh.shape_tuple, mesh.axis_types, strict=True)],
        "order": [numbers[d.id] for d in devices_of(place)],
        "ins": _specs(ins),
        "outs": _specs(outs),
    }


def _specs(shardings: Iterable[Any]) -> list[Any]:
    return [list(sharding.spec) for sharding in shardings]


def devices_needed(place: dict[str, Any] | None) -> int:
    """On how many devices a program runs."""
    return 1 if place is None else len(place["order"])


def read(place: dict[str, Any] | None, devices: Sequence[Device]) -> Place:
    """The place that `written` wrote, on these devices."""
    if place is None:
        return devices[0]
    names, sizes, kinds = zip(*place["axes"], strict=True)
    in_order = [sorted(devices, key=lambda d: d.id)[number] for number in place["order"]]
    mesh = Mesh(np.array(in_order, dtype=object).reshape(sizes), names, tuple(AxisType[kind] for kind in kinds))
    return MeshPlacement(mesh, _shardings(mesh, place["ins"]), _shardings(mesh, place["outs"]))


def _shardings(mesh: Mesh, specs: Iterable[Any]) -> tuple[NamedSharding, ...]:
    return tuple(NamedSharding(mesh, PartitionSpec(*map(_entry, spec))) for spec in specs)


def _entry(entry: Any) -> Any:
    return tuple(entry) if isinstance(entry, list) else entry
