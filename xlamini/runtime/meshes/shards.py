"""Shard: the part of an array on one device."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

from xlamini.core import PartitionSpec, memoised
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.sharding import Index, Sharding


class Shard:
    """The part of an array that one device holds.

    Args:
      device: the device.
      sharding: the sharding of the whole array.
      global_shape: the shape of the whole array.
      data: the part as an array on that device, of the shape `sharding.shard_shape(global_shape)`; None for a device of
        another process.

    >>> shard, = xlamini.numpy.ones(3).addressable_shards
    >>> shard.index, shard.replica_id, shard.data
    ((slice(None, None, None),), 0, Array([1., 1., 1.], dtype=float32))
    """

    def __init__(self, device: Device, sharding: Sharding, global_shape: tuple[int, ...], data: Any = None):
        self._device, self._sharding, self._global_shape, self._data = device, sharding, tuple(global_shape), data

    @property
    def device(self) -> Device:
        """The device that holds the shard."""
        return self._device

    @property
    def data(self) -> Any:
        """The shard as an array on its device; None for a device of another process."""
        return self._data

    @cached_property
    def index(self) -> Index:
        """The shard's index in the whole array: a slice for each dimension."""
        return self._place[0]

    @cached_property
    def replica_id(self) -> int:
        """The number of devices before this one, in the sharding's order, that hold an equal shard."""
        return self._place[1]

    @property
    def _place(self) -> tuple[Index, int]:
        places = _places(self._sharding, self._global_shape)
        if self._device not in places:
            raise ValueError(f"Shard: {self._device} is no device of {self._sharding}")
        return places[self._device]

    def __repr__(self) -> str:
        place = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}"
        return f"Shard({place}, data={self.data})"


@memoised("sharding: shards", 4096)
def _places(sharding: Any, shape: tuple[int, ...]) -> dict[Device, tuple[Index, int]]:
    """For each device the index of its shard, and the number of devices before it with an equal one."""
    spec = getattr(sharding, "spec", None)
    if spec is not None and spec.unreduced:  # each device has a term of the size of the whole, or of its part of it
        sharding = sharding.update(spec=PartitionSpec(*spec.partitions))
    before: Counter[str] = Counter()
    places = {}
    for device, index in sharding.devices_indices_map(shape).items():
        places[device] = index, before[str(index)]
        before[str(index)] += 1
    return places


def addressable_shards(x: Any, parts: list[Any]) -> list[Shard]:
    """The shards of an array, or of an array of keys, on this process's devices."""
    sharding, shape = x.sharding, x.shape
    here = sharding._internal_device_list.addressable_device_list
    return [Shard(device, sharding, shape, part) for device, part in zip(here, parts, strict=True)]


def global_shards(x: Any, parts: list[Any]) -> list[Shard]:
    """The shards of an array on all its devices; those of other processes have no data."""
    sharding, shape = x.sharding, x.shape
    data = dict(zip(sharding._internal_device_list.addressable_device_list, parts, strict=True))
    return [Shard(device, sharding, shape, data.get(device)) for device in sharding._internal_device_list]
