"""Shardings: the assignment of an array's shards to devices.

The classes are jaxlib's, because C++ dispatch reads and compares them. The methods that users need are set on them
here, and for arrays over a mesh in named_sharding.py.
"""

from __future__ import annotations

import functools
from typing import Any

from jaxlib import _hlo, _jax

from xlamini.runtime import jaxlib_types
from xlamini.runtime.devices import device_pickling as device_pickling
from xlamini.runtime.devices.clients import emptied_at_exit
from xlamini.runtime.devices.platforms import Device, default_device

Sharding = jaxlib_types.Sharding
"""The base class of all shardings: how the parts of an array are assigned to devices.

>>> sharding = jnp.ones(4).sharding
>>> isinstance(sharding, Sharding), sharding.num_devices, sharding.shard_shape((4,))
(True, 1, (4,))
"""
SingleDeviceSharding = jaxlib_types.SingleDeviceSharding
"""All of an array on one device.

>>> here = SingleDeviceSharding(xlamini.devices()[0])
>>> jnp.ones(4).sharding == here, here.is_fully_replicated
(True, True)
"""
DeviceList = jaxlib_types.DeviceList
Index = tuple[slice, ...]


@emptied_at_exit
@functools.cache
def on_device(device: Device) -> SingleDeviceSharding:
    """The sharding of an array on one device; one cached object per device."""
    return SingleDeviceSharding(device)


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of an array on one device, in one of its memories.

    >>> make_single_device_sharding(xlamini.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    if not isinstance(device, Device):
        raise TypeError(f"make_single_device_sharding: device must be a device, got {device!r}; as devices()[0]")
    sharding = on_device(device)
    return sharding if memory_kind in (None, sharding.memory_kind) else sharding.with_memory_kind(memory_kind)


def default_sharding() -> SingleDeviceSharding:
    """The sharding of a new, uncommitted array."""
    return on_device(default_device())


def as_sharding(where: Any) -> Any:
    """A sharding from a sharding or a device; the cached object for a single device."""
    if isinstance(where, SingleDeviceSharding):
        cached = on_device(where._device)
        return cached if where == cached else where
    if isinstance(where, Sharding):
        return where
    if isinstance(where, _jax.Device):
        return on_device(where)
    raise TypeError(
        f"device must be a device or a sharding, but is {where!r} of type {type(where).__name__}; "
        "for example xlamini.devices()[0]"
    )


def _device_set(self: Sharding) -> set[Device]:
    """The devices that hold a shard."""
    return set(self._internal_device_list)


def _addressable_devices(self: Sharding) -> set[Device]:
    """The sharding's devices that belong to this process."""
    return set(self._internal_device_list.addressable_device_list)


def _is_fully_addressable(self: Sharding) -> bool:
    """Whether all devices of the sharding belong to this process."""
    return self._internal_device_list.is_fully_addressable


def _is_equivalent_to(self: Any, other: Any, ndim: int) -> bool:
    """Whether two shardings put equal shards of an array of rank `ndim` on the same devices, in the same memory."""
    return (
        self._internal_device_list == other._internal_device_list
        and self.memory_kind == other.memory_kind
        and self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
    )


def _shard_shape(self: SingleDeviceSharding, global_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a shard."""
    return tuple(global_shape)


def _devices_indices_map(
    self: SingleDeviceSharding, global_shape: tuple[int, ...]
) -> dict[Device, Index]:
    """The index of each device's shard."""
    return {self._device: (slice(None),) * len(global_shape)}


def _to_xla_hlo_sharding(self: SingleDeviceSharding, num_dimensions: int) -> _hlo.HloSharding:
    # C++ asks for it when it makes an array for an aval (jaxlib 0.10).
    return _hlo.HloSharding.replicate()


def _describe(self: SingleDeviceSharding) -> str:
    return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self._memory_kind})"


def _equals(self: SingleDeviceSharding, other: object) -> bool:
    if not isinstance(other, SingleDeviceSharding):
        return NotImplemented
    return self._device == other._device and self._memory_kind == other._memory_kind


def _hash(self: SingleDeviceSharding) -> int:
    return hash((self._device, self._memory_kind))


def _with_memory_kind(self: SingleDeviceSharding, kind: str) -> SingleDeviceSharding:
    """The sharding on the same device in another memory kind."""
    return SingleDeviceSharding(self._device, memory_kind=kind)


def _rebuild(device: Device, memory_kind: str) -> SingleDeviceSharding:
    return make_single_device_sharding(device, memory_kind=memory_kind)


_SHARED: dict[str, Any] = {
    "device_set": property(_device_set),
    "addressable_devices": property(_addressable_devices),
    "is_fully_addressable": property(_is_fully_addressable),
    "_device_assignment": property(lambda self: tuple(self._internal_device_list)),
    "_addressable_device_assignment": property(lambda self: tuple(self._internal_device_list.addressable_device_list)),
    "is_equivalent_to": _is_equivalent_to,
    "num_devices": property(lambda self: len(self._internal_device_list)),
    "memory_kind": property(lambda self: self._memory_kind),
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
}
_SINGLE: dict[str, Any] = {
    "is_fully_replicated": True,
    "shard_shape": _shard_shape,
    "devices_indices_map": _devices_indices_map,
    "addressable_devices_indices_map": _devices_indices_map,
    "with_memory_kind": _with_memory_kind,
    "_to_xla_hlo_sharding": _to_xla_hlo_sharding,
    "__repr__": _describe,
    "__eq__": _equals,
    "__hash__": _hash,
    "__reduce__": lambda self: (_rebuild, (self._device, self.memory_kind)),
}

for _name, _member in _SHARED.items():
    setattr(_jax.Sharding, _name, _member)
for _name, _member in _SINGLE.items():
    setattr(SingleDeviceSharding, _name, _member)
