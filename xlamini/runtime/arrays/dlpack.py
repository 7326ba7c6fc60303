"""DLPack import: an Array that shares, or copies, the memory of another library's array."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
from jaxlib import _jax

from xlamini.core import as_dtype, canonicalize_dtype, enable_x64
from xlamini.core.tracing.host_arrays import refuse_masked
from xlamini.runtime.arrays.array import Array, ArrayImpl
from xlamini.runtime.arrays.dlpack_devices import ON_HOST, device_of
from xlamini.runtime.arrays.layout import order_of, use
from xlamini.runtime.arrays.to_device import copy_of, device_put_value
from xlamini.runtime.arrays.to_host import to_numpy, without_jax
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.sharding import as_sharding
from xlamini.runtime.typing import DTypeLike
from xlamini.runtime.versions import DLPACK_VERSION

_SUPPORTED = frozenset({
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
})  # fmt: skip


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """The Array of an object that has `__dlpack__` and `__dlpack_device__`, as ndarrays and torch's tensors do.

    It shares the object's memory where that is aligned and compact, unless `copy`; what is written there later shows
    in the Array, so do not write. With copy=False sharing is demanded (ValueError where it cannot be, as for 64-bit
    values while enable_x64 is off). On another `device`, or that of a sharding, it is a copy. TypeError for other
    objects, ValueError for a sharding of several devices, BufferError for what the other library or DLPack cannot hand
    over.

    >>> import numpy as np
    >>> from_dlpack(np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            f"from_dlpack: an object with __dlpack__ and __dlpack_device__ is needed, got "
            f"{type(external_array).__name__}; for lists and numbers there is jnp.asarray"
        )
    refuse_masked(external_array)
    return from_capsule(external_array, copy, None if device is None else _only_device(device))


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether DLPack knows arrays of this dtype.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("int4")
    (True, False)
    """
    return as_dtype(dtype).name in _SUPPORTED


def _only_device(where: Any) -> Device:
    """The device, or that of a sharding; ValueError for several."""
    devices = as_sharding(where).device_set
    if len(devices) > 1:
        raise ValueError(
            f"from_dlpack: device is a sharding of {len(devices)} devices, but the array can be put on one alone; "
            "split it afterwards with device_put"
        )
    return next(iter(devices))


def from_capsule(external: Any, copy: bool | None, where: Device | None = None) -> Array:
    """The Array of an object with `__dlpack__`; its 64-bit values are narrowed while x64 is off.

    `where`, if it is another device than the source's, makes a copy there. ValueError if a copy is needed but `copy` is
    False.
    """
    kind, number = map(int, external.__dlpack_device__())
    device = _device(kind, number)
    moved = where is not None and where != device
    if moved and copy is False:
        raise ValueError(f"from_dlpack: the array is on {device}, so it must be copied to {where}, but copy=False")
    array = _narrow(_array(external, device, kind in ON_HOST, copy), copy)
    if moved:
        array = device_put_value(array, where, committed=True)
    elif copy:
        array = copy_of(array)
    # A copy runs asynchronously, and the caller may overwrite the source as soon as this returns.
    return array.block_until_ready() if kind in ON_HOST else array


def _array(external: Any, device: Device, on_host: bool, copy: bool | None) -> ArrayImpl:
    stream = None if on_host else device.get_stream_for_external_ready_events()
    try:
        return _row_major(_import_capsule(_capsule(external, stream), device, stream, copy), copy)
    except (_jax.JaxRuntimeError, BufferError) as error:
        # Read-only NumPy arrays have no unversioned capsule, so they are copied; torch's error explains itself.
        if isinstance(error, BufferError) and not isinstance(external, np.ndarray):
            raise BufferError(f"from_dlpack: {error}") from None
        if copy is False and math.prod(getattr(external, "shape", (1,))):
            raise ValueError(f"from_dlpack: this array must be copied, but copy=False: {error}") from None
        if not on_host:
            _raise_not_compact(error)
    return device_put_value(_copy_on_host(external), device, committed=True)


def _capsule(external: Any, stream: int | None) -> Any:
    if DLPACK_VERSION is not None:
        try:
            return external.__dlpack__(stream=stream, max_version=DLPACK_VERSION)
        except TypeError:  # the library predates versioned capsules
            pass
    return external.__dlpack__(stream=stream)


def _import_capsule(capsule: Any, device: Device, stream: int | None, copy: bool | None) -> Any:
    return without_jax(lambda _: _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, copy), None)  # type: ignore[arg-type]


def _row_major(array: ArrayImpl, copy: bool | None) -> ArrayImpl:
    """The array in row-major layout, unless `copy` is False: programs are compiled once more for each other layout."""
    if order_of(array) is None:
        return array
    if copy is False:
        use.any_other = True
        return array
    return device_put_value(np.array(to_numpy(array), order="C"), array.device, committed=True, aval=array.aval)


def _copy_on_host(external: Any) -> np.ndarray:
    """A contiguous NumPy copy of a strided array in host memory."""
    if isinstance(external, np.ndarray):
        return np.array(external)
    try:
        return np.from_dlpack(external).copy()
    except (RuntimeError, BufferError) as error:  # a dtype that NumPy lacks
        _raise_not_compact(error)


def _raise_not_compact(error: Exception) -> NoReturn:
    raise BufferError(f"from_dlpack: {error} Make the array compact first, as x.contiguous() does") from None


def _device(kind: int, number: int) -> Device:
    found = device_of(kind, number)
    if found is None:
        raise TypeError(f"from_dlpack: the array is on a device of DLPack's kind {kind}, which is not here; copy it")
    return found


def _narrow(array: ArrayImpl, copy: bool | None) -> ArrayImpl:
    dtype = array.aval.dtype
    narrow = dtype if enable_x64.value else canonicalize_dtype(dtype)
    if narrow == dtype:
        return array
    if copy is False:
        raise ValueError(
            f"from_dlpack: {dtype} becomes {narrow} while enable_x64 is off, which is a copy, but copy=False; set "
            "config.update('jax_enable_x64', True)"
        )
    return device_put_value(to_numpy(array).astype(narrow), array.device, committed=True)
