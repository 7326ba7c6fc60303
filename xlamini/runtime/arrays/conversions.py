"""Conversions of an Array to Python and NumPy: numbers, ndarrays, DLPack, pickles, copies.

All of them use `to_numpy` (to_host.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
from jaxlib import _jax

from xlamini.core import ShapedArray, Tracer, flatten
from xlamini.core.program.ref_cells import is_holder
from xlamini.runtime.arrays.dlpack_devices import dlpack_device, exportable
from xlamini.runtime.arrays.lifetime import check_alive, describe
from xlamini.runtime.arrays.to_device import copy_of, device_put_value
from xlamini.runtime.arrays.to_host import parts_of, to_numpy
from xlamini.runtime.arrays.transfer_guards import guard_state
from xlamini.runtime.versions import dlpack_capsule

if TYPE_CHECKING:
    from xlamini.runtime.arrays.array import Array
    from xlamini.runtime.arrays.array_interface import ArrayInterface as Mixin  # pyright: ignore[reportMissingModuleSource]
else:
    Mixin = object


def _rebuild(value: np.ndarray, weak_type: bool) -> Array:
    return device_put_value(value, aval=ShapedArray(value.shape, value.dtype, weak_type))


class Conversions(Mixin):
    """Mixin with the conversion methods of Array."""

    aval: ShapedArray
    is_deleted: Callable[[], bool]
    _sharding: Any

    __array_priority__ = 100

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The value as an ndarray; read-only unless it is a copy."""
        value = to_numpy(self)
        if dtype is None and not copy:
            return value
        return np.array(value, dtype=dtype, copy=copy)

    @property
    def _value(self) -> np.ndarray:
        """The value as an ndarray, which C++ reads to transfer an array to another platform."""
        return to_numpy(self)  # type: ignore[arg-type]

    def item(self, *args: int) -> bool | int | float | complex:
        """The only element, or the one at an index, as a Python number."""
        return to_numpy(self).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return to_numpy(self).tolist()

    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """The bytes of the elements."""
        return to_numpy(self).tobytes(order)

    def __float__(self) -> float:
        return float(_scalar(self))

    def __int__(self) -> int:
        return int(_scalar(self))

    def __complex__(self) -> complex:
        return complex(_scalar(self))

    def __index__(self) -> int:
        value = None if self.aval.shape else to_numpy(self).item()
        if type(value) is not int:
            raise TypeError(
                f"only an integer scalar can be an index, but this array is {describe(self)}; "
                "write x.astype(int), or x.item() for an array of one element"
            )
        return value

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ValueError(
                f"the truth value of an array of {self.aval.size} elements, {describe(self)}, is "
                "ambiguous; write x.any(), x.all() or x.size > 0"
            )
        return bool(to_numpy(self).item())

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object: an array of shape () has no axis to count")
        return self.aval.shape[0]

    __hash__: Any = None  # so that libraries which ask are told that it is not Hashable

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (to_numpy(self), self.aval.weak_type)

    def __copy__(self) -> Array:
        return copy_of(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return copy_of(self)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule that shares the array's memory, or a copy's.

        With `dl_device` on another device it is a copy there. BufferError if DLPack has no such dtype or device, or if
        a copy is needed but `copy` is False.
        """
        check_alive(self)
        _check_on_one_device(self)
        array, copied = exportable(self, dl_device, copy)
        if not copied:
            # The capsule keeps this second Array alive, so the memory outlives `delete`; else jaxlib aborts.
            array = parts_of(array)[0]
        try:
            return dlpack_capsule(array, stream, max_version, copied)
        except _jax.JaxRuntimeError as error:
            raise BufferError(f"{describe(self)} has no DLPack form: {error}; convert it with astype first") from None

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device in DLPack's terms: its type (1 CPU, 2 CUDA, 10 ROCm) and its id."""
        _check_on_one_device(self)
        return dlpack_device(self._sharding._device)


def _check_on_one_device(x: Any) -> None:
    """Raise BufferError for an array on several devices: a DLPack capsule holds memory of one device."""
    count = len(x._sharding._internal_device_list)
    if count > 1:
        raise BufferError(
            f"DLPack knows arrays on one device, but {describe(x)} lies on {count}; give "
            "x.addressable_data(i), the part on one of them, or np.asarray(x), the whole on the host"
        )


def _scalar(x: Any) -> Any:
    if x.aval.shape:
        raise TypeError(
            f"only an array of shape () converts to a Python number, but this is {describe(x)}; "
            "write x.item() for its only element, or x[i]"
        )
    return to_numpy(x).item()


T = TypeVar("T")
K = TypeVar("K")


def copy_to_host_async(x: T) -> T:
    """Start copying the Arrays of a pytree to the host, so that a later `device_get` waits less; returns `x`.

    >>> xlamini.copy_to_host_async(xlamini.numpy.ones(2))
    Array([1., 1.], dtype=float32)
    """
    for leaf in flatten(x)[0]:
        if isinstance(leaf, _jax.ArrayImpl):
            leaf.copy_to_host_async()
    return x


def _stays(leaf: Any) -> bool:
    """Whether `device_get` returns a leaf as it is: traced values, refs, and random keys."""
    return type(leaf) is Tracer or is_holder(leaf) or hasattr(leaf, "put_words")


@overload
def device_get(x: Array) -> np.ndarray: ...
@overload
def device_get(x: Mapping[Any, np.ndarray] | Sequence[np.ndarray]) -> Any: ...
@overload
def device_get(x: dict[K, Array]) -> dict[K, np.ndarray]: ...
@overload
def device_get(x: list[Array]) -> list[np.ndarray]: ...
@overload
def device_get(x: Any) -> Any: ...
def device_get(x: Any) -> Any:
    """Copy a pytree to the host: its Arrays become ndarrays; traced values, refs and other leaves stay as they are.

    >>> xlamini.device_get({"a": xlamini.numpy.ones(2), "b": 3})
    {'a': array([1., 1.], dtype=float32), 'b': 3}
    """
    guards = guard_state()
    outer, guards.explicit_device_get = guards.explicit_device_get, True
    try:
        return _fetched(x)
    finally:
        guards.explicit_device_get = outer


def _fetched(x: Any) -> Any:
    leaves, tree = flatten(copy_to_host_async(x))
    return tree.unflatten(
        [
            leaf.__array__() if hasattr(leaf, "__array__") and not _stays(leaf) else leaf
            for leaf in leaves
        ]
    )
