"""What a type checker sees of jaxlib's client: the classes that public types name (core/jaxlib_types.py says why)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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

else:
    from jaxlib._jax import (
        ArrayImpl as ArrayImpl,
        Client as Client,
        Device as Device,
        DeviceList as DeviceList,
        NamedSharding as NamedSharding,
        Sharding as Sharding,
        SingleDeviceSharding as SingleDeviceSharding,
        ffi as _ffi,
    )

    Buffer, ExecutionContext, ExecutionStage = _ffi.Buffer, _ffi.ExecutionContext, _ffi.ExecutionStage
