"""From an Array to Python and NumPy: numbers, ndarrays, DLPack, pickles, copies.

`to_numpy` is the one way out. On a CPU it is a view of the device's memory, safe because a buffer
with a view alive is copied, not overwritten, when it is donated.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxlib import _jax

from xlamini.core.avals import ShapedArray
from xlamini.core.pytree import flatten
from xlamini.runtime.lifetime import check_alive, deleted_error, describe
from xlamini.runtime.put import copy_of, device_put_value
from xlamini.runtime.sharding import on_device
from xlamini.runtime.versions import dlpack_capsule

if TYPE_CHECKING:
    from jaxlib._jax import ArrayImpl as Mixin

    from xlamini.runtime.array import Array
else:
    Mixin = object


def to_numpy(x: Array) -> np.ndarray:
    """The value as a read-only ndarray; waits until it has been computed."""
    if x.is_deleted():
        raise deleted_error(x)
    value = x._npy_value
    if value is None:
        value, copied = without_jax(_fetch, x)
        value.flags.writeable = False
        if copied:
            x._npy_value = value
    return value


def without_jax(method: Callable[[Array], Any], x: Array) -> Any:
    """`method(x)` for a method of C++ that brings the value to the host and asks modules of jax for a sharding.

    Where jax is installed that would load it, and it would overwrite our methods; where it is not, the failing
    import costs 40 us. Placeholders that answer stand in jax's place meanwhile.
    """
    modules = sys.modules
    if "jax" in modules:
        return method(x)
    modules.update(_PLACEHOLDERS)
    try:
        return method(x)
    finally:
        for name in _PLACEHOLDERS:
            modules.pop(name, None)


def _placeholders() -> dict[str, types.ModuleType]:
    names = ("jax", "jax._src", "jax._src.sharding_impls", "jax.core")
    top, source, shardings, core = (types.ModuleType(name) for name in names)
    top.__path__, source.__path__ = [], []
    vars(top).update(_src=source, core=core)
    vars(source)["sharding_impls"] = shardings
    vars(shardings)["make_single_device_sharding"] = _sharding_of
    vars(core)["ShapedArray"] = ShapedArray
    return dict(zip(names, (top, source, shardings, core), strict=True))


def _sharding_of(device: Any, memory_kind: str | None = None) -> Any:
    sharding = on_device(device)
    return sharding if memory_kind in (None, sharding.memory_kind) else sharding.with_memory_kind(memory_kind)


_PLACEHOLDERS = _placeholders()
_fetch = _jax.ArrayImpl._single_device_array_to_np_array_did_copy


def _rebuilt(value: np.ndarray, weak_type: bool) -> Array:
    return device_put_value(value, aval=ShapedArray(value.shape, value.dtype, weak_type))


class Conversions(Mixin):
    """What an Array is to Python and NumPy."""

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

    def item(self, *args: int) -> bool | int | float | complex:
        """The only element, or the one at an index, as a Python number."""
        return to_numpy(self).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return to_numpy(self).tolist()

    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """The elements' bytes."""
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

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'Array'; use x.item(), or x.tobytes(), as the key")

    def __reduce__(self) -> tuple:
        return _rebuilt, (to_numpy(self), self.aval.weak_type)

    def __copy__(self) -> Array:
        return copy_of(self)

    def __deepcopy__(self, memo: dict) -> Array:
        return copy_of(self)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule that shares the array's memory, or a copy's."""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(
                f"dl_device={dl_device}, but the array is on {self.__dlpack_device__()}; "
                "device_put it there first"
            )
        check_alive(self)
        return dlpack_capsule(copy_of(self) if copy else self, stream, max_version, bool(copy))

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's numbers for the kind of device (1 CPU, 2 CUDA) and for the device."""
        device = self._sharding._device
        if device.platform == "cpu":
            return (1, 0)
        if device.platform in ("gpu", "cuda"):
            return (2, device.local_hardware_id)
        raise BufferError(f"DLPack does not know devices of platform {device.platform!r}")


def _scalar(x: Array) -> Any:
    if x.aval.shape:
        raise TypeError(
            f"only an array of shape () converts to a Python number, but this is {describe(x)}; "
            "write x.item() for its only element, or x[i]"
        )
    return to_numpy(x).item()


def device_get(x: Any) -> Any:
    """The pytree `x` with its Arrays as ndarrays, and all else as it is.

    >>> xlamini.device_get({"a": xlamini.numpy.ones(2), "b": 3})
    {'a': array([1., 1.], dtype=float32), 'b': 3}
    """
    leaves, tree = flatten(x)
    for leaf in leaves:
        if isinstance(leaf, _jax.ArrayImpl):
            leaf.copy_to_host_async()
    return tree.unflatten(
        [
            leaf.__array__() if hasattr(leaf, "__array__") and not hasattr(leaf, "put_words") else leaf
            for leaf in leaves
        ]
    )
