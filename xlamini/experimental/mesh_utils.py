"""Arrays of devices for a `Mesh`, ordered by the network that connects them.

The last axes of a mesh are those with the most communication. On a TPU each axis of a mesh is put on whole axes of the
chips' torus, the last one first; elsewhere devices have no coordinates, and their order is left as it is.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.runtime.devices.platforms import devices as all_devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """An array of all `devices`, by default of all devices there are, in the shape of a mesh.

    With `allow_split_physical_axes` an axis of the mesh may take a part of a TPU's physical axis.
    `contiguous_submeshes` leaves chips in the order of their coordinates, so that the devices of a process are
    adjacent.

    ValueError unless the number of devices is the product of `mesh_shape`, NotImplementedError where a TPU's physical
    axes cannot be distributed over the axes of the mesh.

    >>> mesh = xlamini.sharding.Mesh(create_device_mesh((1, 1), xlamini.devices()[:1]), ("data", "model"))
    >>> dict(mesh.shape)
    {'data': 1, 'model': 1}
    """
    every, shape = list(all_devices() if devices is None else devices), tuple(mesh_shape)
    if math.prod(shape) != len(every):
        raise ValueError(
            f"create_device_mesh: mesh_shape {shape} has {math.prod(shape)} devices, but there are {len(every)}; pass "
            "as many in devices"
        )
    if every[0].platform != "tpu":
        return np.fromiter(every, object).reshape(shape)
    grid = _physical(every)
    if contiguous_submeshes:
        return grid.transpose(2, 1, 0, 3).reshape(shape)
    line = _ring(grid, every[0].device_kind)
    return line.reshape(shape) if line is not None else _on_torus(shape, grid, allow_split_physical_axes)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """An array of devices in granules that a slower network connects: slices, or processes with `process_is_granule`.

    `mesh_shape` is the mesh of a granule and `dcn_mesh_shape` the mesh of granules, of one length; the result's shape
    is their product. ValueError where the number of granules, or of devices in one, is another one.

    >>> from types import SimpleNamespace
    >>> devices = [SimpleNamespace(id=i, platform="gpu", slice_index=i // 4) for i in range(8)]
    >>> grid = create_hybrid_device_mesh((2, 2), (2, 1), devices)
    >>> [[device.id for device in row] for row in grid]
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    """
    name = "process_index" if process_is_granule else "slice_index"
    every = list(all_devices() if devices is None else devices)
    granules: dict[int, list[Any]] = {}
    for device in every:
        granules.setdefault(getattr(device, name, 0), []).append(device)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    shape, outer = tuple(mesh_shape), tuple(dcn_mesh_shape)
    if len(shape) != len(outer):
        raise ValueError(f"create_hybrid_device_mesh: mesh_shape {shape} and dcn_mesh_shape {outer} differ in length")
    if math.prod(outer) != len(granules):
        raise ValueError(
            f"create_hybrid_device_mesh: dcn_mesh_shape {outer} has {math.prod(outer)} granules, but the devices have "
            f"{len(granules)} values of {name}"
        )
    split, rank = allow_split_physical_axes, len(shape)
    meshes = [create_device_mesh(shape, granules[key], allow_split_physical_axes=split) for key in keys]
    blocks = np.stack(meshes).reshape(outer + shape)
    interleaved = blocks.transpose([axis for i in range(rank) for axis in (i, rank + i)])
    return interleaved.reshape([a * b for a, b in zip(outer, shape, strict=True)])


def _physical(devices: Sequence[Any]) -> np.ndarray:
    """The devices by coordinates x, y, z and core; ValueError unless they fill a box."""
    places = np.array([(*device.coords, getattr(device, "core_on_chip", 0)) for device in devices])
    places -= places.min(0)
    sizes = (places.max(0) + 1).tolist()
    if math.prod(sizes) != len(devices) or len(np.unique(places, axis=0)) < len(devices):
        raise ValueError(f"create_device_mesh: the TPU devices do not fill a box of {sizes} chips and cores")
    grid = np.empty(sizes, dtype=object)
    grid[tuple(places.T)] = np.fromiter(devices, object)
    return grid


_HOST_OF = {"TPU v2": 8, "TPU v3": 8, "TPU v5 lite": 8, "TPU v6 lite": 8}
"""The most devices of one host, by device kind, of chips that one host holds two rows of."""


def _ring(grid: np.ndarray, kind: str) -> np.ndarray | None:
    """The devices of one host in a ring, along one row and back along the other; None for other slices."""
    if grid.size > _HOST_OF.get(kind, 0) or grid.shape[1] != 2 or grid.shape[2] != 1:
        return None
    there, back = grid[:, 0, 0], grid[::-1, 1, 0]
    return np.concatenate([there.ravel(), back.ravel()])


def _on_torus(shape: tuple[int, ...], grid: np.ndarray, split: bool) -> np.ndarray:
    whole = grid.reshape(*grid.shape[:2], -1)
    for physical in (whole, _split(whole)) if split else (whole,):
        found = next(_assignments(shape[::-1], physical.shape, tuple(range(physical.ndim))), None)
        if found is not None:
            order = [axis for axes in found[::-1] for axis in axes]
            rest = [axis for axis in range(physical.ndim) if axis not in order]
            return physical.transpose(order + rest).reshape(shape)
    raise NotImplementedError(
        f"create_device_mesh: each axis of the mesh {shape} must be a product of physical axes, which have the sizes "
        f"{whole.shape}" + ("" if split else "; pass allow_split_physical_axes=True, or another shape")
    )


def _split(grid: np.ndarray) -> np.ndarray:
    """The grid with each axis as several ones of prime sizes, the minor ones of all axes first."""
    sizes = [_primes(n)[::-1] or [1] for n in grid.shape]
    parts = grid.reshape([n for axis in sizes for n in axis])
    starts = list(itertools.accumulate([0, *map(len, sizes[:-1])]))
    minors = [start + len(axis) - 1 for start, axis in zip(starts, sizes, strict=True)]
    return parts.transpose(minors + [i for i in range(parts.ndim) if i not in minors])


def _primes(n: int) -> list[int]:
    for p in range(2, n + 1):
        if n % p == 0:
            return [p, *_primes(n // p)]
    return []


def _assignments(sizes: Sequence[int], physical: Sequence[int], free: tuple[int, ...]) -> Iterator[list[Any]]:
    """For each size, in order, the free physical axes whose product it is; as many axes as possible come first."""
    if not sizes:
        if all(physical[axis] == 1 for axis in free):
            yield []
        return
    for count in range(len(free), -1, -1):
        for axes in itertools.combinations(free, count):
            if math.prod(physical[axis] for axis in axes) == sizes[0]:
                rest = tuple(axis for axis in free if axis not in axes)
                yield from ([axes, *more] for more in _assignments(sizes[1:], physical, rest))


_edge_of_face(globals())
