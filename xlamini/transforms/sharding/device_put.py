"""Where arrays are: device_put, block_until_ready; and forgetting what was compiled."""
from __future__ import annotations

import copy
from typing import Any

import numpy as np

from xlamini.core.memo import memoised
from xlamini.core.pytree import flatten_from_user, tree_leaves, tree_map, unflatten
from xlamini.core.pytree.prefix import flatten_axes
from xlamini.core.sharding.abstract_mesh import AbstractMesh
from xlamini.core.tracer import Tracer, leaked
from xlamini.primitives.sharding_constraint import moved_to
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.keys import PRNGKeyArray, key_words
from xlamini.runtime.meshes.current_mesh import as_here, named
from xlamini.runtime.meshes.named_sharding import NamedSharding
from xlamini.runtime.processes.agreement import check_same_value
from xlamini.runtime.sharding import Sharding
from xlamini.runtime.to_device import ArrayImpl, device_put_value, parts_to_move
from xlamini.staging.run.jit import jit


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Put the leaves of a tree onto a device or into a sharding; a NumPy array is copied.

    Args:
      x: a tree of arrays and numbers.
      device: a device of any platform, a sharding, which also says in which memory of the device, a PartitionSpec,
        which is about the mesh that `set_mesh` set, or a tree of such that is a prefix of `x`. None leaves arrays where
        they are; other values go to the default device.
      src: where the values come from, for JAX's sake; nothing depends on it.
      donate: whether an Array that is moved gives its memory back at once; a bool, or a tree of bools.
      may_alias: False makes a copy of an Array that is there already.

    An array on several devices that is to be split otherwise over the same ones, in any order, moves between them, not
    by way of the host. Inside a traced function values stay where the program runs. Raises TypeError for a leaf that is
    no array and no number, ShardingError for one that cannot be split so, ValueError where `donate` and `may_alias` are
    both true, a tree is no prefix, a mesh has no devices, or there is a PartitionSpec but no mesh, ProcessError for a
    NumPy array that goes to devices of several processes and is not the same in all of them.

    >>> xlamini.device_put({"w": 1.5})
    {'w': Array(1.5, dtype=float32, weak_type=True)}
    >>> host = xlamini.devices()[0].memory("pinned_host")
    >>> there = xlamini.numpy.ones(2).sharding.with_memory_kind(host.kind)
    >>> xlamini.device_put(xlamini.numpy.ones(2), there).sharding.memory_kind
    'pinned_host'
    """
    if donate is True and may_alias is True:
        raise ValueError("device_put: donate and may_alias cannot both be True; an array that is donated is gone")
    if donate is False and may_alias is not False and (device is None or isinstance(device, (Device, Sharding))):
        return tree_map(lambda leaf: _put(leaf, device), x)
    leaves, tree = flatten_from_user(x)
    places, donated = (flatten_axes("device_put", y, tree, ("device", "x")) for y in (device, donate))
    places = [named(place, "device_put: device has") for place in places]
    return unflatten(tree, [_moved(*leaf, may_alias) for leaf in zip(leaves, places, donated, strict=True)])


def _moved(x: Any, place: Any, donated: bool, may_alias: bool | None) -> Any:
    """One leaf in its place; donated, its own memory is gone, and without aliases the result's is another."""
    there = _put(x, place, donated)
    if isinstance(x, ArrayImpl | PRNGKeyArray) and not x.is_deleted():
        shares = _shares_memory(x, there)
        if shares and may_alias is False:
            return copy.copy(there)
        if donated and not shares:
            x.delete()
    return there


def _shares_memory(x: Any, there: Any) -> bool:
    """Whether some device has a part of an array in the same place as before."""
    if there.sharding.memory_kind != x.sharding.memory_kind or there.devices().isdisjoint(x.devices()):
        return False
    return parts_to_move(x.sharding, there.sharding, x.shape) is not None


def _put(x: Any, place: Any, donated: bool = False) -> Any:
    if type(x) is Tracer:
        return _staged(x, place)
    if type(place) is NamedSharding and isinstance(place.mesh, AbstractMesh):
        raise ValueError(f"device_put: {place.mesh} has no devices to put a value on; use a Mesh of devices")
    if not _is_computed(x, place):
        _check_agreed(x, place)
        return device_put_value(x, place)
    if x.sharding._internal_device_list == place._internal_device_list:
        return _program(place, donated)(x)
    from xlamini.transforms.sharding.device_order import handed_on, numbered_as  # few arrays move so

    return handed_on(_program(numbered_as(x.sharding, place), donated)(x), place)


def _check_agreed(x: Any, place: Any) -> None:
    """All processes must have the same ndarray, if an array on devices of several is made of it."""
    if isinstance(x, np.ndarray) and type(place) is NamedSharding and not place.is_fully_addressable:
        check_same_value(place.mesh.devices.flat, x)


def _staged(tracer: Tracer, place: Any) -> Tracer:
    """A traced value stays on the devices on which its program runs, split over them as is asked for."""
    if not tracer.builder.is_tracing():
        raise leaked(tracer)
    if type(place) is not NamedSharding:
        return tracer
    place.shard_shape(tracer.shape)
    return moved_to(tracer, as_here(place))


def _is_computed(x: Any, place: Any) -> bool:
    """Whether an array stays on its devices, but is split otherwise, so that they exchange parts by a program.

    The devices of a CPU share the host's memory: there it is as fast to put the parts together on the host. With
    devices of other processes the answer depends on nothing that a single process knows.
    """
    if type(place) is not NamedSharding or not isinstance(words := key_words(x), ArrayImpl):
        return False
    own = words._sharding
    if type(own) is not NamedSharding or own is place or own.memory_kind != place.memory_kind:
        return False
    if not _on_same_devices(own, place):
        return False
    if own.is_fully_addressable:
        return not _on_cpu(own) and parts_to_move(own, place, words.shape) is None
    return own.devices_indices_map(words.shape) != place.devices_indices_map(words.shape)


def _on_same_devices(a: NamedSharding, b: NamedSharding) -> bool:
    """Whether both have the same devices, in any order."""
    return a._internal_device_list == b._internal_device_list or a.device_set == b.device_set


def _on_cpu(sharding: NamedSharding) -> bool:
    return sharding.mesh.devices.flat[0].platform == "cpu"


@memoised("program: moves between shardings", 512)
def _program(sharding: Any, donated: bool) -> Any:
    """What moves an array into a sharding over the devices on which it is."""

    def device_put(x: Any) -> Any:
        return x

    return jit(device_put, out_shardings=sharding, donate_argnums=0 if donated else ())


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays in a tree have been computed, and return the tree."""
    for leaf in tree_leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x
