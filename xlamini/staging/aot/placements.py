"""The placement of a compiled program as JSON: one device, or a mesh with the shardings of inputs and outputs.

    {"axes": [["x", 2, "Auto"], ["y", 4, "Auto"]], "order": [0, 1, …], "ins": [["x", null], …], "outs": […]}

`order` numbers the devices by their ids. Loading maps the numbers to as many devices of the same kind.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from xlamini.core import AxisType, PartitionSpec, Values
from xlamini.runtime import Device, Mesh, NamedSharding
from xlamini.runtime.meshes.program_placement import MeshPlacement, Place, devices_of


def written(place: Place, ins: Sequence[Any], outs: Values) -> dict[str, Any] | None:
    """The placement of a program with these input and output shardings as JSON; None for one device."""
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
    """The number of devices that a program runs on."""
    return 1 if place is None else len(place["order"])


def read(place: dict[str, Any] | None, devices: Sequence[Device]) -> Place:
    """The placement that `written` encoded, on these devices."""
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
