"""Resharding onto a mesh of the same devices in another order.

A program has one device order, so it cannot take arrays in one order and return them in another. The array is first
resharded in the current order; then each shard is sent to the device that has its position in the new order.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import PartitionSpec, ShapedArray, memoised
from xlamini.primitives.collectives.permute import ppermute
from xlamini.runtime import ArrayImpl, Mesh, NamedSharding, device_put_value, key_words
from xlamini.runtime.arrays.keys import as_keys
from xlamini.runtime.arrays.to_device import assemble_array
from xlamini.runtime.arrays.to_host import parts_of
from xlamini.staging import jit
from xlamini.transforms.shard_map.api import shard_map


def numbered_as(own: NamedSharding, place: NamedSharding) -> NamedSharding:
    """`place` with a mesh in the device order of `own`."""
    devices = np.array(list(own._internal_device_list), dtype=object).reshape(place.mesh.devices.shape)
    return place.update(mesh=Mesh(devices, place.mesh.axis_names))


def handed_on(x: Any, place: NamedSharding) -> Any:
    """Move an array from the sharding `numbered_as(own, place)` to `place`.

    With several processes a program sends the shards, because this process cannot copy the others' shards.
    """
    if x.is_fully_addressable or place.is_fully_replicated:
        return device_put_value(x, place)
    return as_keys(_sent(key_words(x), place), x.aval)


def _sent(x: ArrayImpl, place: NamedSharding) -> ArrayImpl:
    """Send each shard to the device that has its position in `place`, by a collective permute."""
    old, new = (list(s._internal_device_list) for s in (x.sharding, place))
    line = NamedSharding(Mesh(old, "device"), PartitionSpec("device"))
    rows, *rest = place.shard_shape(x.shape)
    stacked = assemble_array(ShapedArray((len(old) * rows, *rest), x.dtype), line, parts_of(x))
    sent = _sending(line, tuple((n, old.index(d)) for n, d in enumerate(new)))(stacked)
    on = {part.device: part for part in parts_of(sent)}
    return assemble_array(x.aval, place, [on[d] for d in new if d in on])


@memoised("program: reorderings of devices", 512)
def _sending(line: NamedSharding, perm: tuple[tuple[int, int], ...]) -> Any:
    def device_put(part: Any) -> Any:
        return ppermute(part, "device", perm)

    return jit(shard_map(device_put, mesh=line.mesh, in_specs=line.spec, out_specs=line.spec))
