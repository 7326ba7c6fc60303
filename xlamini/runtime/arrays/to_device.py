"""Transfer to devices: Python and NumPy values and Arrays become Arrays there.

A NumPy array is copied, so that changing it afterwards does not change the Array. 64-bit values are
narrowed while x64 is off. A Python number makes a weakly typed Array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from xlamini.core import ShapedArray, enable_x64, memoised
from xlamini.core.dtypes import check_fits, dtype_of, python_scalar_dtypes
from xlamini.core.errors import DeviceNotHereError
from xlamini.core.program.memory_space import DEVICE, HOST
from xlamini.core.tracing.host_arrays import as_ndarray
from xlamini.runtime import jaxlib_types
from xlamini.runtime.arrays.layout import relaid, use
from xlamini.runtime.arrays.lifetime import check_alive, shared
from xlamini.runtime.arrays.to_host import parts_of, to_numpy
from xlamini.runtime.arrays.transfer_guards import between_devices, unguarded
from xlamini.runtime.fork import bar, process
from xlamini.runtime.meshes.named_sharding import typed_by
from xlamini.runtime.sharding import Sharding, SingleDeviceSharding, as_sharding, default_sharding

ArrayImpl = jaxlib_types.ArrayImpl

_NUMPY = (np.ndarray, np.generic)
_NUMBERS = (bool, int, float, complex)
HOST_VALUES = (*_NUMPY, *_NUMBERS)
"""The classes of arrays and numbers of the host that `device_put_value` takes."""
_COPY = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
batched_device_put: Callable[..., Any] = _jax.batched_device_put
"""What puts values on devices; like `put_ndarray` it is a name of this module, by which a profile measures it."""
_ALIGNMENT = 64
"""Alignment in bytes of host memory that XLA's CPU client uses without a copy."""
_FEW = 4096
"""Elements up to which it takes longer to align memory than to copy it again."""
_HUGE = 60_000_000
"""Bytes above which glibc takes memory from the system, page by page (devices/allocation.py)."""


def device_put_value(
    x: Any,
    where: Any = None,
    *,
    committed: bool | None = None,
    aval: ShapedArray | None = None,
) -> ArrayImpl:
    """An Array with the value of `x` on a device.

    Args:
      x: an Array, an ndarray, or a NumPy or Python scalar.
      where: a device or a sharding. None leaves an Array where it is; other values go to the
        default device.
      committed: whether the Array is committed to its devices; by default, if `where` is given.
      aval: the type of the result; by default it follows from `x`.

    Raises:
      TypeError: an Array cannot hold `x`.
      OverflowError: a Python int is out of its dtype's range.
    """
    if isinstance(x, ArrayImpl):
        return _put_array(x, where, committed, aval)
    if hasattr(x, "put_words"):
        return x.put_words(where, committed)
    if process.is_barred:
        bar()
    sharding = default_sharding() if where is None else as_sharding(where)
    bound = where is not None if committed is None else committed
    if isinstance(x, _NUMPY):
        return put_ndarray(x if type(x) is np.ndarray else as_ndarray(x), sharding, bound, aval)
    if aval is None and type(x) in python_scalar_dtypes:
        return _put_scalar(x, sharding, bound)
    number, aval = _number(x), aval or _scalar_aval(x)
    if isinstance(x, int) and not -(2**31) <= x < 2**31:  # NumPy would wrap it around
        check_fits(x, aval.dtype)
    return put_ndarray(number, sharding, bound, aval)


def _put(aval: ShapedArray, sharding: Any, *how: Any) -> ArrayImpl:
    if not _is_plain(aval, sharding):
        aval = typed_by(sharding, aval)
    try:
        return batched_device_put(aval, sharding, *how)
    except _jax.JaxRuntimeError as error:
        if "Unknown NumPy dtype" in str(error):
            raise TypeError(f"XLA has no arrays of dtype {aval.dtype}; use a larger dtype") from None
        if "compile-only client" not in str(error):
            raise
        kind = sharding._internal_device_list[0].device_kind
        raise DeviceNotHereError(
            f"a {kind} of a target holds no arrays, as it is not here; compile for it with arguments that are here"
        ) from None


def _is_plain(aval: ShapedArray, sharding: Any) -> bool:
    """Whether a type is that of an array on one device, in its own memory, as most are, and the sharding too."""
    if type(sharding) is not SingleDeviceSharding or aval.explicit_sharding is not None:
        return False
    return aval.memory_space is DEVICE and sharding._memory_kind != HOST.value


def put_ndarray(
    x: np.ndarray, sharding: Sharding, committed: bool, aval: ShapedArray | None
) -> ArrayImpl:
    if aval is None:
        aval = ShapedArray(x.shape, array_dtype(x.dtype))
    if not isinstance(sharding, SingleDeviceSharding) or _is_huge(aval, sharding):
        return _put_parts(x, sharding, committed, aval)
    if x.dtype is not aval.dtype:
        with np.errstate(over="ignore", invalid="ignore"):
            x = x.astype(aval.dtype)
    return _put(aval, sharding, [x], [sharding._device], committed, False, _COPY, True)


def _is_huge(aval: ShapedArray, sharding: SingleDeviceSharding) -> bool:
    """Whether an array on a CPU is so large that NumPy copies it in less time than XLA, as it asks for large pages."""
    return aval.nbytes > _HUGE and sharding._device.platform == "cpu"


def host_copier(aval: ShapedArray, sharding: Any) -> Callable[[Any], ArrayImpl]:
    """The function that puts NumPy arrays and scalars of one type on the devices of a sharding, in little time."""
    if not _is_plain(aval, sharding) or _is_huge(aval, sharding):
        return lambda x: device_put_value(x, sharding, committed=False)
    put, dtype, devices = batched_device_put, aval.dtype, [sharding._device]

    def copied(x: Any) -> ArrayImpl:
        # C++ narrows by itself, so an array of int64 comes here for one of int32, and takes subclasses as they are.
        if x.dtype is not dtype or not (type(x) is np.ndarray or isinstance(x, np.generic)):
            return device_put_value(x, sharding, committed=False)
        return put(aval, sharding, [x], devices, False, False, _COPY, True)

    return copied


def _put_parts(x: np.ndarray, sharding: Any, committed: bool, aval: ShapedArray) -> ArrayImpl:
    """Put a shard on each device."""
    indices = different_parts(sharding, aval.shape).indices
    return put_parts([x[index] for index in indices], sharding, committed, aval)


def put_parts(parts: Sequence[np.ndarray], sharding: Any, committed: bool, aval: ShapedArray) -> ArrayImpl:
    """An array of its different parts; on a CPU, devices with equal shards share the memory of one copy.

    The copy is made here, because jaxlib fails to make one if some devices, but not all, hold equal shards.
    """
    there = different_parts(sharding, aval.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        copied = _aligned_copy if len(parts) < len(there.devices) or aval.size > _FEW else _copy
        copies = [copied(part, aval.dtype) for part in parts]
    shards = [copies[number] for number in there.numbers]
    return _put(aval, sharding, shards, there.devices, committed, False, _jax.HostBufferSemantics.ZERO_COPY, True)


class DifferentParts(NamedTuple):
    """The parts of an array on this process's devices: each different one, and the number of that on each device."""

    devices: list[Any]
    indices: list[Any]
    numbers: list[int]


@memoised("sharding: different parts", 4096)
def different_parts(sharding: Any, shape: tuple[int, ...]) -> DifferentParts:
    """The different parts of an array of a shape."""
    wanted = sharding.addressable_devices_indices_map(shape)
    numbers: dict[str, int] = {}
    of_devices = [numbers.setdefault(str(index), len(numbers)) for index in wanted.values()]
    indices = {str(index): index for index in wanted.values()}
    return DifferentParts(list(wanted), list(indices.values()), of_devices)


def _copy(x: np.ndarray, dtype: Any) -> np.ndarray:
    return x.astype(dtype, order="C")


def _aligned_copy(x: np.ndarray, dtype: Any) -> np.ndarray:
    """A copy, cast to a dtype, in aligned memory: XLA would copy unaligned memory again for each device."""
    held = np.empty(x.size * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -held.__array_interface__["data"][0] % _ALIGNMENT  # in a tenth of the time of held.ctypes
    copy = held[start : start + x.size * dtype.itemsize].view(dtype).reshape(x.shape)
    np.copyto(copy, x, casting="unsafe")
    return copy


def _put_scalar(x: Any, sharding: Sharding, committed: bool) -> ArrayImpl:
    aval, devices = _scalar_aval(x), sharding._internal_device_list.addressable_device_list
    sharding.shard_shape(())
    try:
        return _put(aval, sharding, [x] * len(devices), list(devices), committed, False, _COPY, enable_x64.value)
    except _jax.JaxRuntimeError:
        check_fits(x, aval.dtype)
        raise


def _scalar_aval(x: Any) -> ShapedArray:
    return ShapedArray((), dtype_of(x), not isinstance(x, bool))


def _number(x: Any) -> np.ndarray:
    if isinstance(x, _NUMBERS):
        return np.asarray(x)
    raise TypeError(
        f"an Array cannot hold a value of type {type(x).__name__}; "
        "pass an array or a number, or make it one with xlamini.numpy.asarray"
    )


def array_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the Array made from an ndarray of a dtype; TypeError if no Array can have it."""
    return _narrow_and_native(dtype)[enable_x64.value]


@memoised("helper: dtypes of arrays", None)
def _narrow_and_native(dtype: np.dtype) -> tuple[np.dtype, np.dtype]:
    native = dtype.newbyteorder("=")
    with enable_x64(False):
        return dtype_of(np.empty((), native)), native


def _put_array(
    x: ArrayImpl, where: Any, committed: bool | None, aval: ShapedArray | None
) -> ArrayImpl:
    check_alive(x)
    sharding = x._sharding if where is None else as_sharding(where)
    bound: bool = x._committed or where is not None if committed is None else committed
    if bound == x._committed and aval is None and sharding == x._sharding:
        return x
    if use.any_other:  # jaxlib 0.10 copies an array to another device in row-major order, and does not say so
        x = relaid([x], [None])[0]
    if isinstance(sharding, SingleDeviceSharding) and isinstance(x._sharding, SingleDeviceSharding):
        return shared(_put(aval or x.aval, sharding, [x], [sharding._device], bound), x)
    numbers = parts_to_move(x._sharding, sharding, x.aval.shape)
    if numbers is None:
        with between_devices():
            return put_ndarray(to_numpy(x), sharding, bound, aval or x.aval)
    held, devices = parts_of(x), sharding._internal_device_list.addressable_device_list
    return shared(_put(aval or x.aval, sharding, [held[n] for n in numbers], list(devices), bound), x)


@memoised("sharding: parts to move", 4096)
def parts_to_move(source: Sharding, target: Sharding, shape: tuple[int, ...]) -> list[int] | None:
    """The shard of `source` to move to each device of `target`: the device's own shard if it already has it.

    None if `target` needs other shards than those on this process's devices.
    """
    held: dict[str, dict[Any, int]] = {}
    for number, (device, index) in enumerate(source.addressable_devices_indices_map(shape).items()):
        held.setdefault(str(index), {})[device] = number
    wanted = [(d, held.get(str(i))) for d, i in target.addressable_devices_indices_map(shape).items()]
    if any(holders is None for _, holders in wanted):
        return None
    return [holders.get(d, min(holders.values())) for d, holders in wanted if holders]


def assemble_array(aval: ShapedArray, sharding: Any, parts: list[ArrayImpl]) -> ArrayImpl:
    """Assemble an Array of shards, given in the order of the sharding's addressable devices."""
    if use.any_other:
        parts = relaid(parts, [None] * len(parts))
    return shared(ArrayImpl(typed_by(sharding, aval), sharding, parts, True, True), *parts)


def copy_of(x: Any) -> ArrayImpl:
    """A copy of `x` in new memory on the same devices."""
    check_alive(x)
    if use.any_other:
        x = relaid([x], [None])[0]
    devices = list(x._sharding._internal_device_list.addressable_device_list)
    with unguarded():  # on each device a copy of what is there
        return _put(x.aval, x._sharding, parts_of(x), devices, x._committed, True)
