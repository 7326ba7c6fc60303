"""`Array`, the public array class: properties and methods that need no computation.

jaxlib's `ArrayImpl` is what programs return. Its methods are those of `Array`, set on it by
`install`; a floor above installs the operators in the same way. Other classes that stand for
arrays, tracers for one, are registered: `Array.register(Tracer)`.
"""

from __future__ import annotations

from abc import ABCMeta
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core import ShapedArray
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.avals import Typed
from xlamini.runtime import jaxlib_types
from xlamini.runtime.arrays.array_repr import ArrayText
from xlamini.runtime.arrays.conversions import Conversions
from xlamini.runtime.arrays.layout import Format, Layout
from xlamini.runtime.arrays.lifetime import check_alive
from xlamini.runtime.arrays.to_host import parts_of, without_jax
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.meshes.shards import Shard, addressable_shards, global_shards
from xlamini.runtime.sharding import Sharding

ArrayImpl = jaxlib_types.ArrayImpl

_block_until_ready = _jax.ArrayImpl.block_until_ready
_is_ready = _jax.ArrayImpl.is_ready
_unsafe_buffer_pointer = _jax.ArrayImpl.unsafe_buffer_pointer
_on_device_size_in_bytes = _jax.ArrayImpl.on_device_size_in_bytes
_cuda_array_interface: Any = _jax.ArrayImpl.__cuda_array_interface__
_copy_to_host_async = _jax.ArrayImpl._copy_single_device_array_to_host_async


class Array(Typed, Conversions, ArrayText, metaclass=ABCMeta):
    """An n-dimensional array on one or more devices; immutable.

    >>> x = xlamini.numpy.arange(3)
    >>> isinstance(x, xlamini.Array), x.shape, x.dtype
    (True, (3,), dtype('int32'))
    """

    @property
    def weak_type(self) -> bool:
        """Whether the dtype is weak: in type promotion it yields to another operand's, as a Python scalar's does."""
        return self.aval.weak_type

    @property
    def sharding(self) -> Sharding:
        """The sharding: the assignment of shards to devices."""
        return self._sharding

    @property
    def format(self) -> Format:
        """The layout of the shards in memory, and the sharding."""
        check_alive(self)
        return Format(Layout.from_pjrt_layout(self._pjrt_layout), self.sharding)

    @property
    def committed(self) -> bool:
        """Whether the array is committed to its devices, so that computations with it run there."""
        return self._committed

    @property
    def device(self) -> Device | Sharding:
        """The array's device if it is on one only, else its sharding."""
        device_list = self._sharding._internal_device_list
        return device_list[0] if len(device_list) == 1 else self._sharding

    def devices(self) -> set[Device]:
        """The devices that hold a shard of the array."""
        return self._sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all shards are on devices of this process."""
        return self._sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return self._sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The shards on this process's devices, in the sharding's order."""
        check_alive(self)
        return list(self._addressable_shards)

    @property
    def global_shards(self) -> list[Shard]:
        """The shards on all devices; `data` is None for devices of other processes."""
        check_alive(self)
        return list(self._global_shards)

    @cached_property
    def _addressable_shards(self) -> list[Shard]:
        return addressable_shards(self, parts_of(self))

    @cached_property
    def _global_shards(self) -> list[Shard]:
        return global_shards(self, parts_of(self))

    def addressable_data(self, index: int) -> ArrayImpl:
        """The data of the `index`-th addressable shard."""
        check_alive(self)
        return parts_of(self)[index]

    def block_until_ready(self) -> Array:
        """Wait until the value has been computed, and return the array."""
        check_alive(self)
        return _block_until_ready(self)

    def is_ready(self) -> bool:
        """Whether the value has been computed."""
        check_alive(self)
        return _is_ready(self)

    def copy_to_host_async(self) -> None:
        """Start a copy of the value to the host, without waiting."""
        check_alive(self)
        without_jax(_copy_to_host_async, self)

    def on_device_size_in_bytes(self) -> int:
        """The bytes that the array takes on its devices."""
        check_alive(self)
        return _on_device_size_in_bytes(self)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the array's buffer; for an array on one device."""
        check_alive(self)
        count = len(self._sharding._internal_device_list)
        if count > 1:
            raise _jax.JaxRuntimeError(
                f"unsafe_buffer_pointer: the array lies on {count} devices; x.addressable_data(i) is the part on one"
            )
        return without_jax(_unsafe_buffer_pointer, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, for CuPy, Numba and PyTorch; AttributeError unless the array is on a GPU."""
        check_alive(self)
        if self.aval.dtype.kind == "V" or any(d.platform != "gpu" for d in self.devices()):
            raise AttributeError(
                "__cuda_array_interface__ is there for arrays of NumPy's own dtypes on a GPU only; np.asarray(x) has "
                "the numbers, x.__dlpack__() the memory"
            )
        return without_jax(_cuda_array_interface.__get__, self)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Not possible: arrays are immutable."""
        raise TypeError(
            "arrays are immutable and do not support in-place item assignment; "
            f"write x = x.at[{_index_text(index)}].set(value), or .add(value) for x[index] += value"
        )


def _index_text(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index_text, index)) + ("," if len(index) == 1 else "")
    if isinstance(index, slice):
        ends = ["" if end is None else str(end) for end in (index.start, index.stop)]
        return ":".join(ends if index.step is None else [*ends, str(index.step)])
    if index is Ellipsis:
        return "..."
    text = np.array_repr(index) if isinstance(index, np.ndarray) else repr(index)
    return text if len(text) <= 40 and "\n" not in text else "index"


class _Empty(metaclass=ABCMeta):
    """An empty class: its members are those that every class defines, and are not installed."""

    aval: ShapedArray


_OF_THE_CLASS = frozenset({*vars(_Empty), "__slots__"})


def install(definition: type) -> None:
    """Copy the members of a class and its bases onto jaxlib's array class."""
    for base in reversed(definition.__mro__[:-1]):
        for name, member in vars(base).items():
            if name not in _OF_THE_CLASS:
                setattr(ArrayImpl, name, api_boundary(member) if type(member) is FunctionType else member)


install(Array)
Array.register(ArrayImpl)
