"""Pickling and copying of devices: a pickle holds the platform and the device id; a copy is the device itself."""

from __future__ import annotations

from typing import Any

from jaxlib import _jax

from xlamini.core import PlatformError
from xlamini.runtime.devices.platforms import Device, devices


def device_by_id(platform: str, number: int) -> Device:
    """The device of a platform with this id; PlatformError if this process has none."""
    here = devices(platform)
    for device in here:
        if device.id == number:
            return device
    raise PlatformError(
        f"the pickle speaks of the device {platform}:{number}, but here are {', '.join(map(str, here))}; load it where "
        "as many devices are, or build what it holds from devices that are here"
    )


def _reduce(self: Device) -> Any:
    if isinstance(self.client, _jax.CompileOnlyPyClient):
        raise TypeError(f"{self} of a target cannot be pickled, as it is not here; pickle the target's name instead")
    return device_by_id, (self.platform, self.id)


_MEMBERS: dict[str, Any] = {
    "__reduce__": _reduce,
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
}
for _name, _member in _MEMBERS.items():
    setattr(Device, _name, _member)
