"""The placement of a compiled program as JSON: one device, or a mesh with the shardings of inputs and outputs.

    {"axes": [["x", 2, "Auto"], ["y", 4, "Auto"]], "order": [0, 1, …], "ins": [["x", null], …], "outs": […]}

`order` numbers the devices by their ids. Loading maps the numbers to as many devices of the same kind.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from xlamini.core import AbstractMesh, AxisType, PartitionSpec, Values
from xlamini.runtime import Device, Mesh, NamedSharding
from xlamini.runtime.meshes.program_placement import DeviceOrMesh, MeshPlacement, devices_of


def written(place: DeviceOrMesh, ins: Sequence[Any], outs: Values) -> dict[str, Any] | None:
    """The placement of a program with these input and output shardings as JSON; None for one device."""
    if not isinstance(place, MeshPlacement):
        return None
    mesh = place.mesh
    numbers = {d.id: i for i, d in enumerate(sorted(devices_of(place), key=lambda d: d.id))}
    return {
        "axes": written_axes(mesh),
        "order": [numbers[d.id] for d in devices_of(place)],
        "ins": [written_spec(s.spec) for s in ins],
        "outs": [written_spec(s.spec) for s in outs],
    }


def written_axes(mesh: Mesh | AbstractMesh) -> list[Any]:
    """The axes of a mesh as JSON: the name, size and type of each. ValueError for a name that is no string."""
    for name in mesh.axis_names:
        if not isinstance(name, str):
            raise ValueError(f"serialize: the mesh axis {name!r} is no string, as names in a file must be; rename it")
    return [[*axis, kind.name] for axis, kind in zip(mesh.shape_tuple, mesh.axis_types, strict=True)]


def written_spec(spec: PartitionSpec) -> Any:
    """A PartitionSpec as JSON: its entries, true for one that is unconstrained; a dict if it has partial sums."""
    entries = [True if entry is PartitionSpec.UNCONSTRAINED else entry for entry in spec]
    if not spec.unreduced and not spec.reduced:
        return entries
    return {"entries": entries, "unreduced": sorted(spec.unreduced), "reduced": sorted(spec.reduced)}


def read_axes(found: Sequence[Any]) -> AbstractMesh:
    """The axes that `written_axes` encoded; KeyError, TypeError or ValueError for malformed JSON."""
    names, sizes, kinds = zip(*found, strict=True)
    if not all(type(name) is str for name in names) or not all(type(size) is int and size > 0 for size in sizes):
        raise TypeError(f"a mesh needs axes with a name and a size, not {str(found)[:40]}")
    return AbstractMesh(sizes, names, tuple(AxisType[kind] for kind in kinds))


def read_spec(found: Any) -> PartitionSpec:
    """The spec that `written_spec` encoded; KeyError, TypeError or ValueError for malformed JSON."""
    if not isinstance(found, dict):
        return PartitionSpec(*map(_entry, found))
    unreduced, reduced = frozenset(found["unreduced"]), frozenset(found["reduced"])
    return PartitionSpec(*map(_entry, found["entries"]), unreduced=unreduced, reduced=reduced)


def devices_needed(place: dict[str, Any] | None) -> int:
    """The number of devices that a program runs on."""
    return 1 if place is None else len(place["order"])


def read(place: dict[str, Any] | None, devices: Sequence[Device]) -> DeviceOrMesh:
    """The placement that `written` encoded, on these devices."""
    if place is None:
        return devices[0]
    axes = read_axes(place["axes"])
    in_order = [sorted(devices, key=lambda d: d.id)[number] for number in place["order"]]
    grid = np.array(in_order, dtype=object).reshape(axes.axis_sizes)
    mesh = Mesh(grid, axes.axis_names, axes.axis_types)
    return MeshPlacement(mesh, _shardings(mesh, place["ins"]), _shardings(mesh, place["outs"]))


def _shardings(mesh: Mesh, specs: Iterable[Any]) -> tuple[NamedSharding, ...]:
    return tuple(NamedSharding(mesh, read_spec(spec)) for spec in specs)


def _entry(entry: Any) -> Any:
    names = entry if isinstance(entry, list) else [entry]
    if entry is not None and entry is not True and not all(type(name) is str for name in names):
        raise TypeError(f"a spec needs names of axes, not {str(entry)[:40]}")
    return PartitionSpec.UNCONSTRAINED if entry is True else tuple(entry) if isinstance(entry, list) else entry
