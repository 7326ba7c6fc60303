"""What a type checker sees of jaxlib's client: the classes that public types name (core/jaxlib_types.py says why)."""

from collections.abc import Mapping
from typing import Any

from xlamini.core.jaxlib_types import Compiled
from xlamini.runtime.arrays.array import Array

class Client(Compiled): ...

class Device(Compiled):
    id: int
    platform: str
    device_kind: str
    process_index: int
    client: Client

    def memory_stats(self) -> dict[str, int] | None: ...

class DeviceList(Compiled): ...

class ArrayImpl(Array, Compiled):
    """Whose methods are those of `Array`."""

class Sharding(Compiled):
    device_set: set[Device]
    memory_kind: str | None
    num_devices: int
    is_fully_addressable: bool
    is_fully_replicated: bool

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]: ...
    def with_memory_kind(self, kind: str) -> Any: ...
    def devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Device, tuple[slice, ...]]: ...

class SingleDeviceSharding(Sharding): ...

class NamedSharding(Sharding): ...

class Buffer(Compiled): ...

class ExecutionContext(Compiled): ...

class ExecutionStage(Compiled): ...
