"""Shard: the part of an array that one device holds."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.sharding import Index, Sharding


class Shard:
    """The part of an array that one device holds.

    Args:
      device: the device.
      sharding: that of the whole array.
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
        """The device that holds it."""
        return self._device

    @property
    def data(self) -> Any:
        """The part itself, on that device; None if that belongs to another process."""
        return self._data

    @property
    def index(self) -> Index:
        """Where it is in the whole array: a slice for each dimension."""
        return self._sharding.devices_indices_map(self._global_shape)[self._device]

    @cached_property
    def replica_id(self) -> int:
        """How many devices before this one, in the sharding's order, hold the same part."""
        before: Counter[str] = Counter()
        for device, index in self._sharding.devices_indices_map(self._global_shape).items():
            if device == self._device:
                return before[str(index)]
            before[str(index)] += 1
        raise ValueError(f"Shard: {self._device} is no device of {self._sharding}")

    def __repr__(self) -> str:
        place = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}"
        return f"Shard({place}, data={self.data})"


def addressable_shards(x: Any, parts: list[Any]) -> list[Shard]:
    """The parts of an array, or of an array of keys, that the devices of this process hold."""
    sharding, shape = x.sharding, x.shape
    here = sharding._internal_device_list.addressable_device_list
    return [Shard(device, sharding, shape, part) for device, part in zip(here, parts, strict=True)]


def global_shards(x: Any, parts: list[Any]) -> list[Shard]:
    """The parts of an array that all its devices hold, those of other processes without their data."""
    sharding, shape = x.sharding, x.shape
    data = dict(zip(sharding._internal_device_list.addressable_device_list, parts, strict=True))
    return [Shard(device, sharding, shape, data.get(device)) for device in sharding._internal_device_list]
