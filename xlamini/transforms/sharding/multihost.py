"""Collectives over processes (barrier, broadcast, gather, comparison), and conversions of host-local and global arrays.

All processes call these functions in one order. With a single process they return their arguments. In JAX they are
`jax.experimental.multihost_utils`, a name that works here too.
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xlamini.core import (
    PartitionSpec,
    ProcessError,
    ShardingError,
    keystr,
    memoised,
    tree_flatten_with_path,
    tree_map,
    tree_unflatten,
)
from xlamini.core.pytree import tree_structure
from xlamini.core.pytree.prefix import broadcast_prefix
from xlamini.runtime import Array, Mesh, NamedSharding
from xlamini.runtime.devices.clients import started_clients
from xlamini.runtime.devices.platforms import devices, process_index
from xlamini.runtime.meshes.array_assembly import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from xlamini.runtime.processes.group import here, numbered
from xlamini.runtime.processes.shutdown import finish
from xlamini.staging import jit

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "sync_global_devices",
]


def sync_global_devices(name: str) -> None:
    """A barrier: wait until all processes have called it, and their pending computations have finished.

    Args:
      name: the name of the barrier; ProcessError if a process waits at another one.

    >>> xlamini.multihost.sync_global_devices("checkpoint written")
    """
    for client in started_clients().values():
        finish(client)
    _exchange(f"sync_global_devices({name!r})")


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Broadcast the values of one process to all processes.

    Args:
      in_tree: a pytree of arrays, with the same shapes and dtypes in all processes.
      is_source: whether this process is the source; by default process 0 is.

    Returns `in_tree` with NumPy arrays of the source's values.

    Raises ProcessError if shapes or dtypes differ, ValueError if not exactly one process is the source.

    >>> xlamini.multihost.broadcast_one_to_all({"seed": 3})
    {'seed': array(3)}
    """
    source = process_index() == 0 if is_source is None else bool(is_source)
    sources = [p for p, said in _exchange("broadcast_one_to_all", "source" if source else "").items() if said]
    if len(sources) != 1:
        raise ValueError(
            f"broadcast_one_to_all: exactly one process must be the source, but is_source is true in {len(sources)}"
        )
    return _gathered("broadcast_one_to_all", in_tree, _row_of(sources[0]))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Gather the values of all processes, in every process, as NumPy arrays.

    Args:
      in_tree: a pytree of arrays, with the same shapes and dtypes in all processes. An array with shards in several
        processes is gathered to a full array.
      tiled: concatenate the arrays along dimension 0, instead of stacking them along a new one. Scalars are stacked in
        both cases.

    Raises ProcessError if shapes or dtypes differ, ValueError for an array on devices of several processes without
    `tiled`, as there is nothing to stack.

    >>> xlamini.multihost.process_allgather(np.arange(3))
    array([[0, 1, 2]])
    """
    for path, x in tree_flatten_with_path(in_tree)[0]:
        if _is_global(x) and not tiled:
            raise ValueError(
                f"process_allgather: the array in_tree{keystr(path)} lies on devices of several processes already, so "
                "that there is nothing to stack; pass tiled=True to have it whole"
            )
    return _gathered("process_allgather", in_tree, _tile if tiled else _stacked)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that the values are bitwise equal in all processes.

    Args:
      in_tree: a pytree of fully addressable arrays and numbers.
      fail_message: the beginning of the error message.

    Raises AssertionError, in all processes, that names the first leaf that differs and the processes.

    >>> xlamini.multihost.assert_equal({"step": 3})
    """
    leaves = tree_flatten_with_path(in_tree)[0]
    own = {f"in_tree{keystr(path)}": _hash(np.asarray(x)) for path, x in leaves}
    said = {p: json.loads(text) for p, text in _exchange("assert_equal", json.dumps(own)).items()}
    first = said[min(said)]
    for leaf in dict.fromkeys(name for known in said.values() for name in known):
        others = [p for p in said if said[p].get(leaf) != first.get(leaf)]
        if others:
            begin = f"{fail_message} " if fail_message else ""
            raise AssertionError(
                f"{begin}{leaf} differs between processes: {numbered(others)} has not the value of process {min(said)}"
            )


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Global arrays over a mesh of all processes, from each process's local part.

    Args:
      local_inputs: a pytree of arrays: this process's part, which is the whole if the spec does not shard over
        processes.
      global_mesh: the mesh; the devices of a process must form a block of it.
      pspecs: a PartitionSpec for each array, or a tree of them that is a prefix of `local_inputs`.

    >>> mesh = xlamini.sharding.Mesh(xlamini.devices()[:1], "x")
    >>> host_local_array_to_global_array(np.ones(2), mesh, PartitionSpec("x"))
    Array([1., 1.], dtype=float32)
    """
    _local_mesh(global_mesh)

    def spread(x: Any, spec: PartitionSpec) -> Any:
        return x if _is_global(x) else make_array_from_process_local_data(NamedSharding(global_mesh, spec), x)

    return _mapped(spread, local_inputs, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """This process's part of global arrays over a mesh of all processes, as arrays over its own devices.

    Args:
      global_inputs: a pytree of arrays.
      global_mesh: the mesh that they lie on; the devices of a process must form a block of it.
      pspecs: a PartitionSpec for each array, or a pytree of them that is a prefix of `global_inputs`. An array with
        another sharding is resharded first.

    >>> mesh = xlamini.sharding.Mesh(xlamini.devices()[:1], "x")
    >>> x = host_local_array_to_global_array(np.ones(2), mesh, PartitionSpec("x"))
    >>> global_array_to_host_local_array(x, mesh, PartitionSpec("x"))
    Array([1., 1.], dtype=float32)
    """
    own = _local_mesh(global_mesh)

    def part(x: Any, spec: PartitionSpec) -> Any:
        expected = NamedSharding(global_mesh, spec)
        if own == global_mesh and isinstance(x, Array) and x.sharding == expected:
            return x
        if not (isinstance(x, Array) and x.sharding.is_equivalent_to(expected, x.ndim)):
            x = jit(_identity, out_shardings=expected)(x)
        return _own_part(x, NamedSharding(own, spec))

    return _mapped(part, global_inputs, pspecs)


def _exchange(what: str, value: str = "") -> dict[int, str]:
    return {0: value} if here.group is None else here.group.exchange(what, value)


def _is_global(x: Any) -> bool:
    return isinstance(x, Array) and not x.is_fully_addressable


def _hash(x: np.ndarray) -> str:
    return f"{x.dtype}{x.shape}{hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()}"


def _gathered(name: str, in_tree: Any, chosen: Callable[[np.ndarray], np.ndarray]) -> Any:
    """The pytree with `chosen(rows)` for each leaf, where row i of `rows` is the value of process i."""
    if here.group is None:
        return tree_map(lambda x: chosen(np.asarray(x)[None]), in_tree)
    leaves = tree_flatten_with_path(in_tree)[0]
    types = {keystr(path): _type(x) for path, x in leaves}
    _check_alike(name, {p: json.loads(text) for p, text in _exchange(name, json.dumps(types)).items()})
    values = [_whole(x) if _is_global(x) else chosen(_stack(np.asarray(x))) for _, x in leaves]
    return tree_unflatten(tree_structure(in_tree), values)


def _type(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}" if isinstance(x, Array) else f"{np.asarray(x).dtype}{list(np.shape(x))}"


def _check_alike(name: str, said: dict[int, dict[str, str]]) -> None:
    first = said[min(said)]
    for p, types in said.items():
        for path in {**first, **types}:
            if first.get(path) != types.get(path):
                raise ProcessError(
                    f"{name}: in_tree{path} is {first.get(path, 'not there')} in process {min(said)} and "
                    f"{types.get(path, 'not there')} in process {p}; it must have one type in all processes"
                )


def _stack(x: np.ndarray) -> np.ndarray:
    """The values of all processes, stacked; they are sent as bytes, which works for every dtype."""
    assert here.group is not None
    grid = np.array(sorted(devices(), key=lambda d: (d.process_index, d.id))).reshape(here.group.num_processes, -1)
    by_process = NamedSharding(Mesh(grid, ("processes", "devices")), PartitionSpec("processes"))
    raw = np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8)
    rows = make_array_from_process_local_data(by_process, raw[None])
    return np.stack([np.frombuffer(row.tobytes(), x.dtype).reshape(x.shape) for row in _whole(rows)])


def _whole(x: Any) -> np.ndarray:
    """An array with shards in several processes, replicated and copied to the host."""
    everywhere = NamedSharding(x.sharding.mesh, PartitionSpec())
    return np.asarray(jit(_identity, out_shardings=everywhere)(x))


def _identity(x: Any) -> Any:
    return x


def _row_of(process: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: np.asarray(rows[process])


def _stacked(rows: np.ndarray) -> np.ndarray:
    return rows


def _tile(rows: np.ndarray) -> np.ndarray:
    return rows if rows.ndim == 1 else rows.reshape(-1, *rows.shape[2:])


def _mapped(fun: Callable[[Any, PartitionSpec], Any], tree: Any, pspecs: Any) -> Any:
    specs: Iterable[PartitionSpec] = broadcast_prefix(pspecs, tree)
    leaves, treedef = tree_flatten_with_path(tree)
    return tree_unflatten(treedef, [fun(x, spec) for (_, x), spec in zip(leaves, specs, strict=True)])


@memoised("sharding: meshes of this process", 64)
def _local_mesh(mesh: Mesh) -> Mesh:
    """The submesh of this process's devices; ShardingError if they do not form a block."""
    own = process_index()
    places = np.argwhere(np.vectorize(lambda d: d.process_index == own, otypes=[bool])(mesh.devices))
    rows = [np.unique(places[:, axis]) for axis in range(mesh.devices.ndim)]
    block = mesh.devices[np.ix_(*rows)]
    if len(places) == 0 or block.size != len(places):
        raise ShardingError(
            f"the {len(places)} devices of process {own} form no block of {mesh}; make the mesh of xlamini.devices() "
            "in their order, or use make_array_from_callback"
        )
    return Mesh(block, mesh.axis_names, mesh.axis_types)


def _own_part(x: Any, sharding: NamedSharding) -> Any:
    """The addressable shards of an array, as an array over this process's devices."""
    shards = {s.device: s.data for s in x.addressable_shards}
    parts = x.sharding.shard_shape(x.shape)
    shape = [n * f for n, f in zip(parts, _split(sharding, len(parts)), strict=True)]
    return make_array_from_single_device_arrays(shape, sharding, [shards[d] for d in sharding.mesh.devices.flat])


def _split(sharding: NamedSharding, ndim: int) -> list[int]:
    """The number of shards along each dimension."""
    sizes = sharding.mesh.shape
    return [int(np.prod([sizes[name] for name in names])) for names in sharding.spec.names_of(ndim)]
