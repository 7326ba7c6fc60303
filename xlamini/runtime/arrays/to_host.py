"""Transfer to the host.

All reads use `to_numpy`. On a CPU it is a view of the device's memory, which is safe because a buffer with a live view
is copied, not overwritten, when it is donated. An array on several devices is assembled from its shards.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core import ShapedArray
from xlamini.runtime.arrays.lifetime import deleted_error, describe
from xlamini.runtime.placeholders import Placeholders
from xlamini.runtime.sharding import make_single_device_sharding


def to_numpy(x: Any) -> np.ndarray:
    """The value as a read-only ndarray; waits until it has been computed."""
    if x.is_deleted():
        raise deleted_error(x)
    value = x._npy_value
    if value is None:
        if len(x.aval.shape) > _MOST_DIMENSIONS:
            raise ValueError(f"NumPy has no array of {len(x.aval.shape)} dimensions, but at most 64; reshape it before")
        is_whole = len(x._sharding._internal_device_list) == 1
        value, copied = without_jax(_fetch, x) if is_whole else (_assemble(x), True)
        value.flags.writeable = False
        if copied:
            x._npy_value = value
    return value


_MOST_DIMENSIONS = 64  # NumPy's NPY_MAXDIMS
_fetch = _jax.ArrayImpl._single_device_array_to_np_array_did_copy
_arrays_of: Any = operator.attrgetter("_arrays")


def buffers_of(x: Any) -> list[Any]:
    """The PJRT buffers of an array's addressable shards."""
    return without_jax(_arrays_of, x)


def parts_of(x: Any) -> list[Any]:
    """The addressable shards of an array, each as an array on its device, made once."""
    found = vars(x).get("_parts")
    if found is None:
        found = x._parts = _new_parts(x)
    return found


def _new_parts(x: Any) -> list[Any]:
    sharding = x._sharding
    aval = x.aval.update(shape=sharding.shard_shape(x.aval.shape))
    pairs = zip(sharding._internal_device_list.addressable_device_list, buffers_of(x), strict=True)
    places = [(make_single_device_sharding(d, memory_kind=sharding.memory_kind), held) for d, held in pairs]
    return [_jax.ArrayImpl(aval, place, [held], True, True) for place, held in places]


def _assemble(x: Any) -> np.ndarray:
    """The value assembled from the shards, each distinct shard read once."""
    sharding = x._sharding
    if sharding.is_fully_replicated:
        return to_numpy(_new_parts(x)[0])
    if not sharding.is_fully_addressable:
        raise RuntimeError(
            f"the array {describe(x)} lies on devices of other processes too, {sharding}; read addressable_shards, or "
            "make it replicated first"
        )
    value, seen = np.empty(x.aval.shape, x.aval.dtype), set()
    indices = sharding.addressable_devices_indices_map(x.aval.shape).values()
    for part, index in zip(_new_parts(x), indices, strict=True):
        range_of_it = tuple((s.start, s.stop) for s in index)
        if range_of_it not in seen:
            value[index] = to_numpy(part)
            seen.add(range_of_it)
    return value


def without_jax(method: Callable[[Any], Any], x: Any) -> Any:
    """Call a C++ `method(x)` that transfers a value to the host and imports a sharding class from modules of jax."""
    with _PLACEHOLDERS:
        return method(x)


_PLACEHOLDERS = Placeholders(
    {
        "jax._src.sharding_impls": {"make_single_device_sharding": make_single_device_sharding},
        "jax.core": {"ShapedArray": ShapedArray},
    }
)
