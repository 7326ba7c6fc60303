"""Arrays of other libraries by DLPack: their memory, shared or copied, as an Array."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core.config import enable_x64
from xlamini.core.dtypes import canonicalize_dtype
from xlamini.runtime.array import ArrayImpl
from xlamini.runtime.conversions import to_numpy, without_jax
from xlamini.runtime.platforms import Device, devices
from xlamini.runtime.put import copy_of, device_put_value

_CPU = (1, 3)  # DLPack's numbers for memory of the host, and for pinned memory


def from_capsule(external: Any, copy: bool | None) -> ArrayImpl:
    """The Array of an object with `__dlpack__`; its 64-bit values are narrowed while x64 is off."""
    kind, number = map(int, external.__dlpack_device__())
    device = _device(kind, number)
    capsule = external.__dlpack__(stream=None if kind in _CPU else 1)
    try:
        array = _narrowed(_held(capsule, device, copy))
        return copy_of(array) if copy else array
    except _jax.JaxRuntimeError as error:
        if copy is False:
            raise ValueError(f"from_dlpack: this array must be copied, but copy=False: {error}") from None
        if kind not in _CPU:
            raise BufferError(f"from_dlpack: {error} Make the array compact first") from None
    return device_put_value(np.from_dlpack(external).copy(), device, committed=True)


def _held(capsule: Any, device: Device, copy: bool | None) -> Any:
    return without_jax(lambda _: _jax.dlpack_managed_tensor_to_buffer(capsule, device, None, copy), None)  # type: ignore[arg-type]


def _device(kind: int, number: int) -> Device:
    platform = "cpu" if kind in _CPU else "gpu"
    try:
        found = [d for d in devices(platform) if platform == "cpu" or d.local_hardware_id == number]
    except RuntimeError:
        found = []
    if not found:
        raise TypeError(f"from_dlpack: the array is on a device of DLPack's kind {kind}, which is not here; copy it")
    return found[0]


def _narrowed(array: ArrayImpl) -> ArrayImpl:
    dtype = array.aval.dtype
    narrow = dtype if enable_x64.value else canonicalize_dtype(dtype)
    return array if narrow == dtype else device_put_value(to_numpy(array).astype(narrow), array.device, committed=True)
