"""What a type checker sees of jaxlib's client: the classes that public types name (core/jaxlib_types.py says why)."""

from __future__ import annotations

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
