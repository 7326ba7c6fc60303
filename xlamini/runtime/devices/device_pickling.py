"""Devices in pickles and copies: a pickle has the platform and the number, a copy is the device itself."""

from __future__ import annotations

from typing import Any

from jaxlib import _jax

from xlamini.core.errors import PlatformError
from xlamini.runtime.devices.platforms import Device, devices


def device_numbered(platform: str, number: int) -> Device:
    """The device of this number; PlatformError if there is none here."""
    here = devices(platform)
    for device in here:
        if device.id == number:
            return device
    raise PlatformError(
        f"the pickle speaks of the device {platform}:{number}, but here are {', '.join(map(str, here))}; load it where "
        "as many devices are, or build what it holds from devices that are here"
    )


def _reduced(self: Device) -> Any:
    if isinstance(self.client, _jax.CompileOnlyPyClient):
        raise TypeError(f"{self} of a target cannot be pickled, as it is not here; pickle the target's name instead")
    return device_numbered, (self.platform, self.id)


_MEMBERS: dict[str, Any] = {
    "__reduce__": _reduced,
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
}
for _name, _member in _MEMBERS.items():
    setattr(Device, _name, _member)
