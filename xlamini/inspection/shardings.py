"""The mesh of a program, and how its arguments lie on it, for the screen that draws shards."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.runtime.meshes.program_placement import MeshPlacement
from xlamini.staging.aot.stages import Lowered


def mesh_of(lowered: Lowered) -> dict[str, Any] | None:
    """The mesh as the schema has it; None for a program on one device."""
    program, call = lowered._program, lowered._call
    place = program.device
    if not isinstance(place, MeshPlacement):
        return None
    mesh = place.mesh
    axes = [{"name": str(name), "size": size} for name, size in mesh.shape.items()]
    for axis, kind in zip(axes, mesh.axis_types, strict=True):
        axis["type"] = kind.name
    names = [*["a captured array"] * len(call.trace.captured), *call.trace.names]
    used = [name for name, is_used in zip(names, program.used_inputs, strict=True) if is_used]
    inputs = zip(used, program.pruned.in_avals, place.of_inputs(len(used)), strict=True)
    ids = np.vectorize(lambda device: device.id, otypes=[int])(mesh.devices)
    return {"axes": axes, "devices": ids.tolist(), "values": [_value(*each) for each in inputs]}


def _value(name: str, aval: Any, sharding: Any) -> dict[str, Any]:
    spec = [part if part is None or isinstance(part, str) else list(part) for part in sharding.spec]
    shards = [
        {"device": device.id, "index": [_range(part, n) for part, n in zip(index, aval.shape, strict=True)]}
        for device, index in sharding.devices_indices_map(aval.shape).items()
    ]
    return {"row": None, "name": name, "type": aval.str_short(), "spec": spec, "shards": shards}


def _range(part: slice, size: int) -> list[int]:
    start, stop, _ = part.indices(size)
    return [start, stop]
