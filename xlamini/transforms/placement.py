"""Where a program runs: where its committed arguments are, else on the default device."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.runtime.keys import overlaid
from xlamini.runtime.platforms import default_device, local_devices
from xlamini.runtime.put import ArrayImpl
from xlamini.runtime.sharding import as_sharding


class Placement(NamedTuple):
    """A device, and whether it was chosen explicitly."""

    device: Any
    committed: bool


def placement(leaves: Sequence[Any], names: Sequence[str], fun_name: str, asked: Any = None) -> Placement:
    """Where a call runs; ValueError if its committed arguments are on several devices."""
    if asked is not None:
        return Placement(_device(asked), True)
    arrays = map(overlaid, leaves)
    committed = [(i, x) for i, x in enumerate(arrays) if isinstance(x, ArrayImpl) and x._committed]
    if not committed:
        return Placement(default_device(), False)
    first, device = committed[0][0], committed[0][1].device
    for i, x in committed:
        if x.device != device:
            raise ValueError(
                f"{fun_name}: arguments {names[first]!r} and {names[i]!r} are on different devices, {device} and "
                f"{x.device}; move one with xlamini.device_put"
            )
    return Placement(device, True)


def _device(asked: Any) -> Any:
    """The device that a platform's name, a device or a sharding stands for; TypeError for anything else."""
    return local_devices(backend=asked)[0] if isinstance(asked, str) else as_sharding(asked)._device
