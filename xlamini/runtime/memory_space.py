"""Memory spaces: the memory of a device, and the host's memory that it reads directly."""
from __future__ import annotations

import enum
from typing import Any

from xlamini.runtime.array import Array
from xlamini.runtime.devices.platforms import default_device
from xlamini.runtime.sharding import make_single_device_sharding


class Space(enum.Enum):
    """A memory to `device_put` into: the device's own (Device), the host's (Host), or the one a value is in (Any).

    >>> x = xlamini.device_put(xlamini.numpy.ones(2), xlamini.memory.Space.Host)
    >>> x.sharding.memory_kind
    'pinned_host'
    """

    Device = "device"
    Host = "pinned_host"
    Any = "any"


def in_space(x: Any, space: Space) -> Any:
    """The sharding of a value in another memory of its devices."""
    own = x.sharding if isinstance(x, Array) else make_single_device_sharding(default_device())
    return own if space is Space.Any else own.with_memory_kind(space.value)
