"""Saving pytrees of arrays to a folder, and loading them with other shardings.

Every process writes the shards on its own devices, into a folder that all of them share, and reads what its devices
need. The files are xlamini's own: JAX's are those of tensorstore, which is not used here.
"""
from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import as_dtype, flatten_axes, flatten_from_user, tree_map, unflatten
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.flags.config import trace_flags, under
from xlamini.experimental.array_serialization import folder as _folder
from xlamini.runtime import Array, Device, KeyType, Sharding, named
from xlamini.runtime.devices.platforms import process_count, process_index
from xlamini.runtime.meshes.array_assembly import make_array_from_callback
from xlamini.runtime.sharding import as_sharding
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.sharding.multihost import sync_global_devices

__all__ = ["load", "load_pytreedef", "nonblocking_load", "nonblocking_save", "save"]

_Path = str | os.PathLike[str]


def save(data: Any, directory: _Path, *, overwrite: bool = True, ts_specs: Any = None) -> None:
    """Write a pytree of arrays and numbers to a folder.

    An earlier save in the folder is replaced, unless `overwrite` is False. Classes of containers other than dicts,
    lists and tuples are registered in `xlamini.export` first. Random keys are saved as their words,
    `random.key_data(key)`. `ts_specs` has to be None.

    ValueError for a folder that has other files in it; TypeError for a leaf that is no array and no number.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"w": xlamini.numpy.arange(3)}, folder + "/state")
    ...     load(folder + "/state", xlamini.devices()[0])
    {'w': Array([0, 1, 2], dtype=int32)}
    """
    _prepared(data, directory, overwrite, ts_specs)()


def load(directory: _Path, shardings: Any, *, mask: Any = None, ts_specs: Any = None) -> Any:
    """The pytree that `save` wrote, with its arrays on the devices that `shardings` says.

    `shardings` is a sharding, a device, a Format or a ShapeDtypeStruct with one, or a pytree of them that is a prefix
    of the saved one. A process reads only the parts that its devices hold. Where `mask`, a bool or a prefix of bools,
    is False, the result is None. `ts_specs` has to be None.

    LoadError for a folder that is incomplete or damaged; ShardingError where an array cannot be split so.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"w": jnp.arange(3), "b": 1.5}, folder + "/state")
    ...     load(folder + "/state", xlamini.devices()[0], mask={"w": True, "b": False})
    {'b': None, 'w': Array([0, 1, 2], dtype=int32)}
    """
    _check_no_specs("load", ts_specs)
    folder = Path(directory)
    tree, leaves = _folder.read_index(folder)
    places = flatten_axes("load", shardings, tree, ("shardings", "saved data"))
    wanted = flatten_axes("load", True if mask is None else mask, tree, ("mask", "saved data"))
    every = zip(leaves, places, wanted, strict=True)
    loaded = [_loaded(folder, i, leaf, place) if keep else None for i, (leaf, place, keep) in enumerate(every)]
    return unflatten(tree, loaded)


def load_pytreedef(directory: _Path) -> Any:
    """The saved pytree with a ShapeDtypeStruct in place of each array.

    LoadError for a folder that is incomplete or damaged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"w": jnp.arange(3)}, folder + "/state")
    ...     load_pytreedef(folder + "/state")
    {'w': ShapeDtypeStruct(shape=(3,), dtype=int32)}
    """
    tree, leaves = _folder.read_index(Path(directory))
    return unflatten(tree, [ShapeDtypeStruct(leaf.shape, as_dtype(leaf.dtype)) for leaf in leaves])


class PyTreeFuture:
    """The result of a save or a load that may be going on; `pytree` has its types, as ShapeDtypeStructs."""

    pytree: Any

    def __init__(self, future: Future[Any], pytree: Any):
        self._future, self.pytree = future, pytree

    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def result(self) -> Any:
        """Wait for its end; the loaded pytree, None for a save, or the error that it ended with."""
        return self._future.result()

    def __await__(self) -> Generator[Any, Any, Any]:
        import asyncio

        return asyncio.wrap_future(self._future).__await__()

    def __repr__(self) -> str:
        return f"PyTreeFuture(done={self.done()}, pytree={self.pytree})"


def nonblocking_save(data: Any, directory: _Path, *, overwrite: bool = True, ts_specs: Any = None) -> PyTreeFuture:
    """`save` in a thread. The arrays' values are copied to the host first, so that they may be donated or deleted.

    With several processes it has ended when this returns, since they wait for one another. Errors of the arguments are
    raised at once, those of the files by `result()`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saving = nonblocking_save({"w": jnp.arange(3)}, folder + "/state")
    ...     saving.result()
    ...     load(folder + "/state", xlamini.devices()[0])
    {'w': Array([0, 1, 2], dtype=int32)}
    """
    types = tree_map(lambda x: ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)), data)
    return PyTreeFuture(_started(_prepared(data, directory, overwrite, ts_specs)), types)


def nonblocking_load(
    directory: _Path, shardings: Any, *, mask: Any = None, ts_specs: Any = None
) -> PyTreeFuture:
    """`load` in a thread, with the same arguments.

    The types of the arrays are known at once, as `pytree` of the result; `result()` waits, and raises what `load`
    raises.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save({"w": jnp.arange(3)}, folder + "/state")
    ...     loading = nonblocking_load(folder + "/state", xlamini.devices()[0])
    ...     loading.pytree, loading.result()
    ({'w': ShapeDtypeStruct(shape=(3,), dtype=int32)}, {'w': Array([0, 1, 2], dtype=int32)})
    """
    types = load_pytreedef(directory)
    return PyTreeFuture(_started(lambda: load(directory, shardings, mask=mask, ts_specs=ts_specs)), types)


def _started(work: Callable[[], Any]) -> Future[Any]:
    if process_count() > 1:
        future: Future[Any] = Future()
        future.set_result(work())
        return future
    flags = trace_flags()  # of the caller's thread, such as enable_x64

    def in_thread() -> Any:
        with under(flags):
            return work()

    pool = ThreadPoolExecutor(1, "xlamini-files")
    future = pool.submit(in_thread)
    pool.shutdown(wait=False)
    return future


def _prepared(data: Any, directory: _Path, overwrite: bool, ts_specs: Any) -> Callable[[], None]:
    """A function that writes the files; the values are on the host already."""
    _check_no_specs("save", ts_specs)
    given, tree = flatten_from_user(data)
    arrays = [_as_array(x, i) for i, x in enumerate(given)]
    index, shards = _folder.index_of(tree, list(map(_folder.leaf_of, arrays))), list(map(_folder.host_shards, arrays))
    target = Path(directory)
    partial = target.with_name(f"{target.name}.xlamini-partial")

    def write() -> None:
        if process_index() == 0:
            _folder.check_replaceable(target, overwrite)
            shutil.rmtree(partial, ignore_errors=True)  # of a save that did not end
            partial.mkdir(parents=True)
        sync_global_devices(f"save to {target}: begin")
        _folder.write_shards(partial, shards)
        sync_global_devices(f"save to {target}: end")
        if process_index() == 0:
            _folder.complete(partial, target, index)
        sync_global_devices(f"save to {target}: complete")

    return write


def _as_array(x: Any, number: int) -> Array:
    if isinstance(getattr(x, "dtype", None), KeyType):
        raise TypeError(f"save: the leaf {number} is a random key; save random.key_data(key), and wrap it again")
    if not isinstance(x, Array | np.ndarray | np.generic | bool | int | float | complex):
        raise TypeError(f"save: the leaf {number} must be an array or a number, got {type(x).__name__}")
    return jnp.asarray(x)


def _loaded(folder: Path, number: int, leaf: _folder.Leaf, place: Any) -> Any:
    if isinstance(place, ShapeDtypeStruct):
        _check_type(leaf, place)
        place = place.sharding
    place = named(place, "load: shardings has")
    if not isinstance(place, Sharding | Device):
        raise TypeError(f"load: shardings must have a sharding or a device for each leaf, got {place!r}")
    sharding = as_sharding(place)

    def part(index: tuple[slice, ...]) -> np.ndarray:
        return _folder.read_box(folder, number, leaf, _folder.box_of(index, leaf.shape))

    return make_array_from_callback(leaf.shape, sharding, part, as_dtype(leaf.dtype))


def _check_type(leaf: _folder.Leaf, wanted: ShapeDtypeStruct) -> None:
    if (wanted.shape, wanted.dtype.name) != (leaf.shape, leaf.dtype):
        raise ValueError(
            f"load: a saved array is {leaf.dtype}{list(leaf.shape)}, but shardings has {wanted.dtype.name}"
            f"{list(wanted.shape)} for it"
        )


def _check_no_specs(what: str, ts_specs: Any) -> None:
    if ts_specs is not None:
        raise ValueError(f"{what}: ts_specs must be None, because tensorstore is not used")


_edge_of_face(globals())
