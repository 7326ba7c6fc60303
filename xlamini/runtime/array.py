"""`Array`, the public class of arrays: what one knows without computing.

jaxlib's `ArrayImpl` is what programs return. Its methods are those of `Array`, set on it by
`install`; a floor above installs the operators in the same way. Other classes that stand for
arrays, tracers for one, are registered: `Array.register(Tracer)`.
"""

from __future__ import annotations

from abc import ABCMeta
from types import FunctionType
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core.api_boundary import edge
from xlamini.core.avals import ShapedArray
from xlamini.runtime.array_repr import Text
from xlamini.runtime.conversions import Conversions
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.lifetime import check_alive
from xlamini.runtime.meshes.shards import Shard, addressable_shards, global_shards
from xlamini.runtime.sharding import Sharding
from xlamini.runtime.to_host import parts_of, without_jax

ArrayImpl = _jax.ArrayImpl

_block_until_ready = ArrayImpl.block_until_ready
_is_ready = ArrayImpl.is_ready
_unsafe_buffer_pointer = ArrayImpl.unsafe_buffer_pointer
_on_device_size_in_bytes = ArrayImpl.on_device_size_in_bytes
_cuda_array_interface: Any = ArrayImpl.__cuda_array_interface__
_copy_to_host_async = ArrayImpl._copy_single_device_array_to_host_async


class Array(Conversions, Text, metaclass=ABCMeta):
    """An n-dimensional array on one or more devices; immutable.

    >>> x = xlamini.numpy.arange(3)
    >>> isinstance(x, xlamini.Array), x.shape, x.dtype
    (True, (3,), dtype('int32'))
    """

    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to that of another operand, as a Python scalar's does."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    @property
    def sharding(self) -> Sharding:
        """Which device holds which part."""
        return self._sharding

    @property
    def committed(self) -> bool:
        """Whether its place was chosen explicitly, so that computing with it happens there."""
        return self._committed

    @property
    def device(self) -> Device | Sharding:
        """Its device if there is one, else its sharding."""
        held_by = self._sharding._internal_device_list
        return held_by[0] if len(held_by) == 1 else self._sharding

    def devices(self) -> set[Device]:
        """The devices that hold a part of it."""
        return self._sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach all of it."""
        return self._sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device of it holds all of it."""
        return self._sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts that devices of this process hold, in the sharding's order."""
        check_alive(self)
        return addressable_shards(self, parts_of(self))

    @property
    def global_shards(self) -> list[Shard]:
        """The parts that all its devices hold; `data` of those that belong to other processes is None."""
        check_alive(self)
        return global_shards(self, parts_of(self))

    def addressable_data(self, index: int) -> ArrayImpl:
        """The data of the `index`-th part that this process can reach."""
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
        """Begin to bring the value to the host, without waiting."""
        check_alive(self)
        without_jax(_copy_to_host_async, self)

    def on_device_size_in_bytes(self) -> int:
        """Bytes that it takes on its devices."""
        check_alive(self)
        return _on_device_size_in_bytes(self)

    def unsafe_buffer_pointer(self) -> int:
        """The address of its memory; for an array on one device."""
        check_alive(self)
        count = len(self._sharding._internal_device_list)
        if count > 1:
            raise _jax.JaxRuntimeError(
                f"unsafe_buffer_pointer: the array lies on {count} devices; x.addressable_data(i) is the part on one"
            )
        return without_jax(_unsafe_buffer_pointer, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where CuPy, Numba and PyTorch find the array's memory on an NVIDIA GPU; elsewhere there is no such thing."""
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
            "an Array is immutable, so x[index] = value cannot work; "
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
    """What every class has of its own."""

    aval: ShapedArray


_OF_THE_CLASS = frozenset({*vars(_Empty), "__slots__"})


def install(definition: type) -> None:
    """Set the members that a class and its bases define on jaxlib's array class."""
    for base in reversed(definition.__mro__[:-1]):
        for name, member in vars(base).items():
            if name not in _OF_THE_CLASS:
                setattr(ArrayImpl, name, edge(member) if type(member) is FunctionType else member)


install(Array)
Array.register(ArrayImpl)
