"""`pmap` over the devices of several processes: each process gives and gets the entries of its own devices.

The entries of all processes form arrays over all devices, on which one program runs; of each result a process gets the
part on its devices, as an array of its own.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import PartitionSpec, ShardingError, unflatten
from xlamini.core.pytree import flatten
from xlamini.runtime import Device, Mesh, NamedSharding
from xlamini.runtime.arrays.keys import PRNGKeyArray
from xlamini.runtime.meshes.array_assembly import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)

Specs = Sequence[PartitionSpec]


def entries_here(size: int, devices: Sequence[Device], rank: int, fun_name: str) -> None:
    """ShardingError unless there is an entry for each device of this process."""
    mine = sum(d.process_index == rank for d in devices)
    if size != mine:
        raise ShardingError(
            f"pmap: {fun_name} is mapped over {size} entries in process {rank}, which has {mine} devices; with several "
            "processes, each gives an entry for every device of its own"
        )


def to_all(leaves: Sequence[Any], specs: Specs, mesh: Mesh) -> list[Any]:
    """Arrays over the mesh, of the entries that each process gives."""
    shardings = [NamedSharding(mesh, spec) for spec in specs]
    return [_moved(make_array_from_process_local_data, s, x) for s, x in zip(shardings, leaves, strict=True)]


def to_each(tree: Any, specs: Specs, mesh: Mesh, rank: int) -> Any:
    """Of each array in the tree, the part on the devices of this process, as an array over these devices."""
    leaves, treedef = flatten(tree)
    mine = Mesh(np.array([d for d in mesh.devices.flat if d.process_index == rank]), mesh.axis_names)
    shardings = [NamedSharding(mine, spec) for spec in specs]
    return unflatten(treedef, [_moved(_part, s, x) for s, x in zip(shardings, leaves, strict=True)])


def _part(sharding: NamedSharding, x: Any) -> Any:
    by_device = {shard.device: shard.data for shard in x.addressable_shards}
    parts = [by_device[device] for device in sharding.mesh.devices.flat]
    spec = sharding.spec
    shape = tuple(n * (len(parts) if i < len(spec) and spec[i] else 1) for i, n in enumerate(parts[0].shape))
    return make_array_from_single_device_arrays(shape, sharding, parts)


def _moved(move: Callable[[NamedSharding, Any], Any], sharding: NamedSharding, x: Any) -> Any:
    """`move(sharding, x)`; of random keys their words are moved."""
    return PRNGKeyArray(x.dtype, move(sharding, x.words)) if isinstance(x, PRNGKeyArray) else move(sharding, x)
