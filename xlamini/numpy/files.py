"""Arrays in files of NumPy's formats, .npy and .npz; and from other libraries' memory.

NumPy's files know its own dtypes only. An array of another is written as one of records with a single field, which has
the dtype's name; but bfloat16 as JAX writes it, without a name.
"""
from __future__ import annotations

import os
from typing import IO, Any

import ml_dtypes
import numpy as np

from xlamini.core.dtypes import ml_classes
from xlamini.core.tracing.host_arrays import as_ndarray
from xlamini.runtime import Array, device_put_value
from xlamini.runtime.arrays.dlpack import from_dlpack as _from_dlpack

_OPAQUE = {np.dtype("V2"): np.dtype(ml_dtypes.bfloat16)}
"""What NumPy's files call the one dtype of ours that they do not know and that is told by its size."""
_NAMED = {dtype.name: dtype for dtype in map(np.dtype, ml_classes) if dtype not in _OPAQUE.values()}
"""The other dtypes that NumPy's files do not know."""

File = IO[bytes] | str | os.PathLike[Any]


def save(file: File, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array into a file in NumPy's format; a name without a suffix gets ".npy".

    `file` may also be a file object that is open for writing. `load` reads it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/weights", jnp.arange(3))
    ...     load(f"{folder}/weights.npy")
    Array([0, 1, 2], dtype=int32)
    """
    np.save(file, _as_written(arr), allow_pickle=allow_pickle)


def _as_written(x: Any) -> np.ndarray:
    """An array as it is written; of records, if NumPy's files do not know its dtype."""
    array = as_ndarray(x)
    if array.dtype.name not in _NAMED:
        return array
    return np.ascontiguousarray(array).reshape(array.shape).view([(array.dtype.name, f"V{array.itemsize}")])


def _as_read(x: np.ndarray) -> np.ndarray:
    """An array as it was before it was written."""
    names = x.dtype.names or ()
    dtype = _NAMED.get(names[0]) if len(names) == 1 else _OPAQUE.get(x.dtype)
    return x if dtype is None else np.asarray(x).view(dtype)


class _Arrays(np.lib.npyio.NpzFile):
    """NumPy's object of a file with several arrays, which come as they were before they were written."""

    def __getitem__(self, key: str) -> Any:
        return _as_read(super().__getitem__(key))


def savez(file: File, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays into one file, under their keywords, or as "arr_0", "arr_1" and so on.

    A name without a suffix gets ".npz". `allow_pickle` makes no difference, because arrays hold numbers.

    >>> import io
    >>> file = io.BytesIO()
    >>> savez(file, w=jnp.arange(3), b=jnp.zeros(2))
    >>> _ = file.seek(0)
    >>> saved = load(file)
    >>> sorted(saved), saved["w"]
    (['b', 'w'], array([0, 1, 2], dtype=int32))
    """
    arrays: dict[str, Any] = {name: _as_written(x) for name, x in kwds.items()}
    np.savez(file, *map(_as_written, args), **arrays)


def load(file: File, *args: Any, **kwargs: Any) -> Any:
    """The array that `save` wrote; of a file of `savez`, an object that is indexed with names, and gives ndarrays.

    Arguments are those of `numpy.load`. 64-bit numbers are narrowed while x64 is off.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, jnp.arange(3))
    >>> file.seek(0)
    0
    >>> load(file)
    Array([0, 1, 2], dtype=int32)
    """
    found = np.load(file, *args, **kwargs)
    if isinstance(found, np.ndarray):
        if found.dtype == object:
            return found
        read = _as_read(found)
        if read.dtype.type is np.void:
            raise TypeError(f"load: the file does not name its dtype, {read.dtype}; write np.load(file).view(dtype)")
        return device_put_value(read)
    if isinstance(found, np.lib.npyio.NpzFile):
        found.__class__ = _Arrays
    return found


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Not supported, since a file may change between tracing and running: NotImplementedError.

    >>> fromfile("numbers.bin")
    Traceback (most recent call last):
        ...
    NotImplementedError: fromfile: a program must not depend on a file; use jnp.asarray(np.fromfile(...))
    """
    raise NotImplementedError("fromfile: a program must not depend on a file; use jnp.asarray(np.fromfile(...))")


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """The Array of an object with `__dlpack__`; see `xlamini.dlpack.from_dlpack`.

    >>> from_dlpack(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    return _from_dlpack(x, device, copy)
