"""Assembly of sharded arrays from their shards.

A shard comes from a callback, from this process's local data, or is already an array on its device. No process needs
to hold the whole array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from xlamini.core import PartitionSpec, ShapedArray, canonicalize_dtype, tree_map
from xlamini.core.tracing.host_arrays import as_ndarray
from xlamini.runtime.arrays.array import Array
from xlamini.runtime.arrays.keys import KeyType, as_keys, key_words
from xlamini.runtime.arrays.lifetime import check_alive
from xlamini.runtime.arrays.to_device import (
    HOST_VALUES,
    array_dtype,
    assemble_array,
    device_put_value,
    different_parts,
    put_parts,
)
from xlamini.runtime.meshes.current_mesh import named
from xlamini.runtime.sharding import Index, Sharding

Shape = tuple[int, ...]
_VALUES = (Array, *HOST_VALUES)


def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding | PartitionSpec, data_callback: Callable[[Index], Any], dtype: Any = None
) -> Any:
    """A sharded array whose shards a callback returns; each process makes only those of its own devices.

    Args:
      shape: the shape of the whole array.
      sharding: which device holds which part; a PartitionSpec refers to the mesh that `set_mesh` set.
      data_callback: `data_callback(index)` returns the part that a tuple of slices, one for each dimension, selects:
        an array or a number. It is called once for each different part.
      dtype: the dtype of the shards; required in a process that holds none of them.

    Raises ShardingError for a shape that the sharding cannot split, ValueError for shards of another shape or of
    different dtypes, TypeError for a shard that is no array.

    >>> where = xlamini.numpy.ones(1).sharding
    >>> whole = np.arange(4.0)
    >>> make_array_from_callback((4,), where, lambda index: whole[index])
    Array([0., 1., 2., 3.], dtype=float32)
    """
    name, shape = "make_array_from_callback", tuple(shape)
    sharding = _checked_sharding(name, sharding)
    there = different_parts(sharding, shape)
    made = [_check_value(data_callback(index), index) for index in there.indices]
    if made and (aval := _plain_type(made, sharding, shape, dtype)) is not None:
        return put_parts(made, sharding, True, aval)
    arrays = [device_put_value(made[number], d) for d, number in zip(there.devices, there.numbers, strict=True)]
    return _assemble(name, shape, sharding, arrays, dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding | PartitionSpec, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """A sharded array made of arrays that are already on their devices, without a copy.

    Args:
      shape: the shape of the whole array.
      sharding: which device holds which part; a PartitionSpec refers to the mesh that `set_mesh` set.
      arrays: one array on each device of this process in `sharding`, in any order.
      dtype: their dtype; required in a process that has none of these devices.

    Raises ShardingError for a shape that the sharding cannot split, ValueError for too few or too many arrays, or
    arrays on other devices or of another shape or dtype, TypeError for a value that is no array.

    >>> make_array_from_single_device_arrays((2,), xlamini.numpy.ones(2).sharding, [xlamini.numpy.ones(2)])
    Array([1., 1.], dtype=float32)
    """
    name = "make_array_from_single_device_arrays"
    sharding = _checked_sharding(name, sharding)
    if not isinstance(arrays, list | tuple):
        raise TypeError(f"{name}: arrays must be a list of arrays, got {type(arrays).__name__}; write [x]")
    for i, x in enumerate(arrays):
        if not isinstance(key_words(x), _jax.ArrayImpl):
            raise TypeError(f"{name}: arrays[{i}] is of type {type(x).__name__}; xlamini.device_put(x, device) first")
        check_alive(key_words(x))
    return _assemble(name, tuple(shape), sharding, arrays, dtype)


def make_array_from_process_local_data(
    sharding: Sharding | PartitionSpec, local_data: Any, global_shape: Any = None
) -> Any:
    """A sharded array assemble_array from each process's local data, for example its part of a batch.

    Args:
      sharding: which device holds which part; a PartitionSpec refers to the mesh that `set_mesh` set.
      local_data: the shards of this process's devices, concatenated along each dimension; or, along a dimension of the
        whole array's length, all of it. It may be a pytree of arrays.
      global_shape: the shape of the whole array, or a pytree of shapes. A length that is None, or a shape left out, is
        inferred from `local_data`: its length times the ratio of all shards to this process's shards.

    With one process `local_data` is the whole array. Raises ShardingError if the sharding cannot split the whole,
    ValueError if the length of `local_data` differs from that of this process's shards.

    >>> make_array_from_process_local_data(xlamini.numpy.ones(2).sharding, np.ones(2))
    Array([1., 1.], dtype=float32)
    """
    name = "make_array_from_process_local_data"
    sharding = _checked_sharding(name, sharding)
    if _is_shape(global_shape):
        return tree_map(lambda x: _from_local(name, sharding, x, global_shape), local_data)
    return tree_map(lambda x, shape: _from_local(name, sharding, x, shape), local_data, global_shape, is_leaf=_is_shape)


def _is_shape(x: Any) -> bool:
    return x is None or (isinstance(x, list | tuple) and all(n is None or isinstance(n, int | np.integer) for n in x))


def _from_local(name: str, sharding: Sharding, data: Any, asked: Any) -> Any:
    data = data if isinstance(data, Array) else as_ndarray(data)
    is_whole = asked is None or tuple(asked) == data.shape
    if is_whole and type(data) is np.ndarray and sharding.is_fully_addressable:
        return device_put_value(data, sharding)
    shape = _whole_shape(name, sharding, data.shape, asked)
    here = _local_ranges(sharding, shape)
    selects = [_selector(name, shape, i, data.shape[i], here[i]) for i in range(len(shape))]

    def part(index: Index) -> Any:
        return data[tuple(select(s) for select, s in zip(selects, index, strict=True))]

    return make_array_from_callback(shape, sharding, part, canonicalize_dtype(data.dtype))


def _whole_shape(name: str, sharding: Sharding, local: Shape, asked: Any) -> Shape:
    """The global shape: as given, otherwise the local shape times the ratio of all shards to local shards."""
    asked = (None,) * len(local) if asked is None else tuple(asked)
    if len(asked) != len(local):
        raise ValueError(f"{name}: global_shape {asked} and local_data of shape {local} differ in rank")
    if all(n is not None for n in asked):
        return asked
    counts = _part_counts(sharding, len(local))
    held = [len(ranges) for ranges in _local_ranges(sharding, counts)]
    inferred = [n * count // h for n, count, h in zip(local, counts, held, strict=True)]
    return tuple(n if a is None else a for a, n in zip(asked, inferred, strict=True))


def _part_counts(sharding: Any, ndim: int) -> Shape:
    """The number of parts of each dimension, computed from a length that every sharding of these devices divides."""
    n = sharding.num_devices
    return tuple(n // part for part in sharding.shard_shape((n,) * ndim))


def _local_ranges(sharding: Sharding, shape: Shape) -> list[list[tuple[int, int]]]:
    """The distinct ranges along each dimension that this process's devices hold, in order."""
    indices = sharding.addressable_devices_indices_map(shape).values()
    return [sorted({index[i].indices(n)[:2] for index in indices}) for i, n in enumerate(shape)]


def _selector(
    name: str, shape: Shape, dim: int, local: int, ranges: list[tuple[int, int]]
) -> Callable[[slice], slice]:
    """A function from a slice of the whole array along a dimension to the corresponding slice of the local data."""
    whole, held = shape[dim], sum(stop - start for start, stop in ranges)
    if local == whole:
        return lambda part: part
    if local != held:
        raise ValueError(
            f"{name}: dimension {dim} of local_data has size {local}, but of an array of shape {shape} the devices of "
            f"this process hold {held} of {whole} there; pass these, or all of them"
        )
    numbers = {start: number for number, (start, _) in enumerate(ranges)}

    def select(part: slice) -> slice:
        start, stop, _ = part.indices(whole)
        at = numbers[start] * (stop - start)
        return slice(at, at + stop - start)

    return select


def _checked_sharding(name: str, sharding: Any) -> Sharding:
    """The sharding; a PartitionSpec refers to the mesh that `set_mesh` set."""
    sharding = named(sharding, f"{name}: sharding is")
    if not isinstance(sharding, Sharding):
        raise TypeError(f"{name}: sharding must be a sharding, got {sharding!r}; write NamedSharding(mesh, P('x'))")
    return sharding


def _plain_type(made: Sequence[Any], sharding: Any, shape: Shape, dtype: Any) -> ShapedArray | None:
    """The type of an array whose parts are ndarrays, all as they must be; None for other parts."""
    part, found = sharding.shard_shape(shape), getattr(made[0], "dtype", np.dtype(bool))
    if not all(type(x) is np.ndarray and x.dtype == found and x.shape == part for x in made):
        return None
    aval = ShapedArray(shape, array_dtype(found))
    if dtype is None:
        return aval
    return None if isinstance(dtype, KeyType) or canonicalize_dtype(np.dtype(dtype)) != aval.dtype else aval


def _check_value(value: Any, index: Index) -> Any:
    if not isinstance(value, _VALUES):
        raise TypeError(
            f"make_array_from_callback: data_callback returned a value of type {type(value).__name__} for {index}; "
            "return an array, for example np.asarray of it"
        )
    return value


def _assemble(name: str, shape: Shape, sharding: Sharding, arrays: Sequence[Any], dtype: Any) -> Any:
    """Check the shards, and assemble the array of them."""
    part = sharding.shard_shape(shape)
    ordered = _in_order(name, sharding, arrays)
    found = _dtype_of(name, ordered, dtype)
    for x in ordered:
        if x.shape != part:
            raise ValueError(
                f"{name}: the part on {x.device} has the shape {x.shape}, but each part of an array of shape {shape} "
                f"has {part} in {sharding}"
            )
    words = [key_words(x) for x in ordered]
    physical = aval = ShapedArray(shape, found)
    if isinstance(found, KeyType):
        physical = ShapedArray((*shape, *found.physical_shape), found.physical_dtype)
    return as_keys(assemble_array(physical, sharding, words), aval)


def _in_order(name: str, sharding: Sharding, arrays: Sequence[Any]) -> list[Any]:
    """The arrays in the order of the sharding's devices."""
    wanted = sharding._internal_device_list.addressable_device_list
    if len(arrays) != len(wanted):
        raise ValueError(
            f"{name}: {len(arrays)} arrays for {len(wanted)} devices of this process in {sharding}; give one for each"
        )
    on = {x.device: x for x in arrays}
    missing = [d for d in wanted if d not in on]
    if missing:
        raise ValueError(
            f"{name}: no array lies on {missing[0]}, but on {list(on)}; one must lie on each device of {sharding}"
        )
    return [on[d] for d in wanted]


def _dtype_of(name: str, arrays: Sequence[Any], dtype: Any) -> Any:
    """The common dtype of the shards."""
    if not arrays and dtype is None:
        raise ValueError(f"{name}: no device of the sharding is here to know the dtype from; pass dtype")
    wanted = dtype if isinstance(dtype, KeyType) else None if dtype is None else canonicalize_dtype(np.dtype(dtype))
    first = arrays[0].dtype if wanted is None else wanted
    for x in arrays:
        if x.dtype != first:
            than = "dtype is" if dtype is not None else f"that on {arrays[0].device} has"
            raise ValueError(f"{name}: the part on {x.device} has dtype {x.dtype}, but {than} {first}; use astype")
    return first
