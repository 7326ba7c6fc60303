"""DLPack: conversion of other libraries' arrays to Arrays, without a copy where their memory allows it.

The other direction needs no function here: an Array has `__dlpack__`, which `torch.from_dlpack` and others call.
"""

from typing import Any

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.dtypes import as_dtype
from xlamini.runtime.array import Array
from xlamini.runtime.dlpack import from_capsule as _from_capsule
from xlamini.runtime.sharding import as_sharding as _as_sharding
from xlamini.typing import DTypeLike

__all__ = ["from_dlpack", "is_supported_dtype"]

_SUPPORTED = frozenset({
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
})  # fmt: skip


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """The Array of an object with `__dlpack__` and `__dlpack_device__`, such as an ndarray or a torch tensor.

    It shares the object's memory if that is aligned and compact, unless `copy`; later writes to the memory change the
    Array, so do not write to it. copy=False demands sharing (ValueError if it is impossible, as for 64-bit values while
    enable_x64 is off). On another `device` it is a copy. TypeError for other objects, BufferError for an array that the
    other library or DLPack cannot export.

    >>> import numpy as np
    >>> from_dlpack(np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            f"from_dlpack: an object with __dlpack__ and __dlpack_device__ is needed, got "
            f"{type(external_array).__name__}; for lists and numbers there is jnp.asarray"
        )
    where = None if device is None else _as_sharding(device)._device
    return _from_capsule(external_array, copy, where)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether DLPack supports arrays of this dtype.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("int4")
    (True, False)
    """
    return as_dtype(dtype).name in _SUPPORTED


_edge_of_face(globals())
