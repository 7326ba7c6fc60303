"""Arrays of other libraries by DLPack: their memory, shared or copied, as an Array."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core.avals import ShapedArray
from xlamini.core.config import enable_x64
from xlamini.core.dtypes import canonicalize_dtype
from xlamini.runtime.array import ArrayImpl
from xlamini.runtime.conversions import without_jax
from xlamini.runtime.platforms import Device, devices
from xlamini.runtime.put import device_put_value
from xlamini.runtime.sharding import on_device

_CPU = (1, 3)  # DLPack's numbers for memory of the host, and for pinned memory


def from_capsule(external: Any, copy: bool | None) -> ArrayImpl:
    """The Array of an object with `__dlpack__`; its 64-bit values are narrowed while x64 is off."""
    kind, number = external.__dlpack_device__()
    device = _device(int(kind), int(number))
    capsule = external.__dlpack__(stream=None if int(kind) in _CPU else 1)
    try:
        held = without_jax(lambda _: _jax.dlpack_managed_tensor_to_buffer(capsule, device, None, copy), None)  # type: ignore[arg-type]
    except _jax.JaxRuntimeError as error:
        raise BufferError(f"from_dlpack: {error} Make the array compact first, as np.ascontiguousarray does") from None
    return _with_own_aval(held, device)


def _device(kind: int, number: int) -> Device:
    platform = "cpu" if kind in _CPU else "gpu"
    try:
        found = [d for d in devices(platform) if platform == "cpu" or d.local_hardware_id == number]
    except RuntimeError:
        found = []
    if not found:
        raise TypeError(f"from_dlpack: the array is on a device of DLPack's kind {kind}, which is not here; copy it to the CPU")
    return found[0]


def _with_own_aval(held: Any, device: Device) -> ArrayImpl:
    """The Array with an aval and a sharding of ours in place of what C++ chose."""
    dtype, shape = np.dtype(held.dtype), tuple(held.shape)
    array = ArrayImpl(ShapedArray(shape, dtype), on_device(device), [held], True, True)
    narrow = dtype if enable_x64.value else canonicalize_dtype(dtype)
    return array if narrow == dtype else device_put_value(np.asarray(array).astype(narrow), device, committed=True)
