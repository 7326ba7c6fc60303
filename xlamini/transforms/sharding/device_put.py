"""device_put, block_until_ready and clear_caches."""
from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Unpack, overload

import numpy as np

from xlamini.core import (
    AbstractMesh,
    PartitionSpec,
    Tracer,
    flatten_axes,
    flatten_from_user,
    leaked,
    memoised,
    tree_leaves,
    tree_map,
    unflatten,
)
from xlamini.core.program.memory_space import Space, space_in_program
from xlamini.primitives import in_space
from xlamini.primitives.placement.sharding_constraint import moved_to
from xlamini.runtime import Array, ArrayImpl, Device, NamedSharding, Sharding, device_put_value, key_words, named
from xlamini.runtime.arrays.keys import PRNGKeyArray
from xlamini.runtime.arrays.layout import Format, Layout, order_asked, relaid, without_layout
from xlamini.runtime.arrays.lifetime import wait_for
from xlamini.runtime.arrays.memory_space import sharding_in
from xlamini.runtime.arrays.to_device import parts_to_move
from xlamini.runtime.arrays.transfer_guards import guard_state, unguarded
from xlamini.runtime.meshes.current_mesh import as_here
from xlamini.runtime.processes.agreement import check_same_value
from xlamini.runtime.sharding import as_sharding
from xlamini.runtime.typing import ArrayLike
from xlamini.staging import jit

T = TypeVar("T")


class PutOptions(TypedDict, total=False):
    """The keyword arguments of `device_put`."""

    src: Any
    donate: Any
    may_alias: Any


@overload
def device_put(x: ArrayLike, device: Any = None, **options: Unpack[PutOptions]) -> Array: ...
@overload
def device_put(
    x: Mapping[Any, np.ndarray] | Sequence[np.ndarray], device: Any = None, **options: Unpack[PutOptions]
) -> Any: ...
@overload
def device_put(x: T, device: Any = None, **options: Unpack[PutOptions]) -> T: ...
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Move the leaves of a pytree to a device or sharding; a NumPy array is copied.

    Args:
      x: a pytree of arrays and numbers.
      device: a device of any platform, a sharding, which includes a memory kind, a PartitionSpec, which refers to the
        mesh that `set_mesh` set, a `memory.Space`, a `Format`, which has a layout too, or a pytree of these that is a
        prefix of `x`. None does not move arrays, and puts other values on the default device.
      src: the source of the values; accepted for compatibility with JAX and ignored.
      donate: whether a moved Array releases its memory at once; a bool, or a pytree of bools.
      may_alias: False copies an Array that is already in place.

    An array that is resharded over the same devices, in any order, moves between the devices, not through the host.
    Inside a traced function values stay on the devices of the program, but may move to another memory of these, which
    their types show: `float32<host>[2]`. The derivative moves back. Raises TypeError for a leaf that is no array and
    no number, ShardingError for one that cannot be sharded so, ValueError where `donate` and `may_alias` are both true,
    a pytree is no prefix, a mesh has no devices, there is a PartitionSpec but no mesh, or, inside a traced function, a
    memory kind is neither device nor pinned_host, ProcessError for a NumPy
    array that goes to devices of several processes and differs between them.

    >>> xlamini.device_put({"w": 1.5})
    {'w': Array(1.5, dtype=float32, weak_type=True)}
    >>> host = xlamini.devices()[0].memory("pinned_host")
    >>> there = xlamini.numpy.ones(2).sharding.with_memory_kind(host.kind)
    >>> xlamini.device_put(xlamini.numpy.ones(2), there).sharding.memory_kind
    'pinned_host'
    """
    if donate is True and may_alias is True:
        raise ValueError("device_put: donate and may_alias cannot both be True; an array that is donated is gone")
    guards = guard_state()
    outer, guards.explicit_device_put = guards.explicit_device_put, True
    try:
        if donate is False and may_alias is not False and (device is None or isinstance(device, (Device, Sharding))):
            return tree_map(lambda leaf: _put(leaf, device), x)
        return _put_tree(x, device, donate, may_alias)
    finally:
        guards.explicit_device_put = outer


def _put_tree(x: Any, device: Any, donate: Any, may_alias: bool | None) -> Any:
    """Move each leaf to its place of a pytree of places."""
    leaves, tree = flatten_from_user(x)
    places, donated = (flatten_axes("device_put", y, tree, ("device", "x")) for y in (device, donate))
    shardings = [named(without_layout(place), "device_put: device has") for place in places]
    moved = [_moved(*leaf, may_alias) for leaf in zip(leaves, shardings, donated, strict=True)]
    return unflatten(tree, list(map(_laid, moved, places, donated)))


def _laid(x: Any, place: Any, donated: bool) -> Any:
    """The moved leaf in the layout that a format asks for; inside a traced function the compiler chooses it."""
    if not isinstance(place, Format) or not isinstance(place.layout, Layout) or type(x) is Tracer:
        return x
    order = order_asked("device_put: device has", place, x.ndim)
    if not isinstance(x, ArrayImpl):
        raise TypeError(f"device_put: device has {place.layout} for keys, whose words have no order; leave it open")
    (there,) = relaid([x], [order])
    if donated and there is not x:
        x.delete()
    return there


def in_order(x: ArrayImpl, order: Any) -> Any:
    """The array with its dimensions in another order in memory."""
    with unguarded():  # on each device a copy of what is there
        return _order_program(x._sharding, order)(x)


@memoised("program: moves between layouts", 512)
def _order_program(sharding: Any, order: Any) -> Any:
    def device_put(x: Any) -> Any:
        return x

    return jit(device_put, out_shardings=Format(None if order is None else Layout(order), sharding))


def _moved(x: Any, place: Any, donated: bool, may_alias: bool | None) -> Any:
    """Move one leaf; a donated Array is deleted, and with `may_alias=False` the result has memory of its own."""
    there = _put(x, place, donated)
    if isinstance(x, ArrayImpl | PRNGKeyArray) and not x.is_deleted():
        shares = _shares_memory(x, there)
        if shares and may_alias is False:
            return copy.copy(there)
        if donated and not shares:
            x.delete()
    return there


def _shares_memory(x: Any, there: Any) -> bool:
    """Whether the moved array shares a buffer with the original on some device."""
    if there.sharding.memory_kind != x.sharding.memory_kind or there.devices().isdisjoint(x.devices()):
        return False
    if _has_terms(x) or _has_terms(there):
        return x is there
    return parts_to_move(x.sharding, there.sharding, x.shape) is not None


def _put(x: Any, place: Any, donated: bool = False) -> Any:
    if type(x) is Tracer:
        return _staged(x, place)
    place = sharding_in(x, place) if type(place) is Space else place
    if type(place) is NamedSharding and isinstance(place.mesh, AbstractMesh):
        raise ValueError(f"device_put: {place.mesh} has no devices to put a value on; use a Mesh of devices")
    if _has_terms(x):
        x = _summed(x, place)
    if type(place) is NamedSharding and place.spec.unreduced:
        plain = place.update(spec=PartitionSpec(*place.spec.partitions, reduced=place.spec.reduced))
        return x if getattr(x, "sharding", None) == place else _program(place, donated)(_put(x, plain))
    if not _is_computed(x, place):
        _check_agreed(x, place)
        return device_put_value(x, place)
    if x.sharding._internal_device_list == place._internal_device_list:
        return _program(place, donated)(x)
    from xlamini.transforms.sharding.device_order import handed_on, numbered_as  # few arrays move so

    return handed_on(_program(numbered_as(x.sharding, place), donated)(x), place)


def _has_terms(x: Any) -> bool:
    """Whether it is an array whose devices have terms of its value."""
    own = x._sharding if type(x) is ArrayImpl else None
    return type(own) is NamedSharding and bool(own.spec.unreduced)


def _summed(x: Any, place: Any) -> Any:
    """An unreduced array, its sum taken, where it goes to a place in which it is another."""
    own = x._sharding
    if place is None or own == place:
        return x
    if type(place) is NamedSharding and _on_same_devices(own, place) and own.mesh == place.mesh:
        return _program(place, False)(x)
    return _program(own.update(spec=PartitionSpec(*own.spec.partitions)), False)(x)


def _check_agreed(x: Any, place: Any) -> None:
    """ProcessError unless all processes pass the same ndarray to an array on devices of several processes."""
    if isinstance(x, np.ndarray) and type(place) is NamedSharding and not place.is_fully_addressable:
        check_same_value(place.mesh.devices.flat, x)


def _staged(tracer: Tracer, place: Any) -> Tracer:
    """device_put of a tracer: to another memory or sharding of the program's devices, which it cannot leave."""
    if not tracer.builder.is_tracing():
        raise leaked(tracer)
    if isinstance(place, Space):
        return tracer if place is Space.Any else in_space(tracer, place)
    if not isinstance(place, Sharding):
        if not (place is None or hasattr(place, "sharding")):
            as_sharding(place)
        return tracer
    if type(place) is NamedSharding:
        place.shard_shape(tracer.shape)
        tracer = moved_to(tracer, as_here(place))
    return in_space(tracer, space_in_program("device_put", place.memory_kind))


def _is_computed(x: Any, place: Any) -> bool:
    """Whether an array is resharded over its own devices by a program that exchanges shards.

    CPU devices share the host's memory, so copies on the host are as fast there. With several processes the answer must
    be the same in all of them, so it depends only on the shardings.
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
    """The jitted identity that reshards an array over its devices."""

    def device_put(x: Any) -> Any:
        return x

    return jit(device_put, out_shardings=sharding, donate_argnums=0 if donated else ())


def block_until_ready(x: T) -> T:
    """Wait until all arrays in a tree have been computed, and return the tree.

    Calls return before their results are computed: measure a time with this around the result. An error of the program
    is raised here. Leaves that are no arrays stay as they are.

    >>> results = {"w": jnp.ones(2) * 3, "step": 1}
    >>> block_until_ready(results)
    {'w': Array([3., 3.], dtype=float32), 'step': 1}
    """
    leaves = tree_leaves(x)
    wait_for([leaf for leaf in leaves if type(leaf) is ArrayImpl])
    for leaf in leaves:
        if type(leaf) is not ArrayImpl and hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x
