"""mesh_utils and topologies: orders of devices beside recorded ones of JAX, on invented TPUs; errors by their text."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from xlamini.experimental import compilation_cache, topologies
from xlamini.experimental.mesh_utils import create_device_mesh, create_hybrid_device_mesh


class Chip(NamedTuple):
    """What the order depends on."""

    id: int
    coords: tuple[int, int, int]
    core_on_chip: int = 0
    device_kind: str = "TPU v4"
    platform: str = "tpu"
    slice_index: int = 0
    process_index: int = 0


def torus(x: int, y: int, z: int, kind: str = "TPU v4", cores: int = 1) -> list[Any]:
    places = [(i, j, k, c) for k in range(z) for j in range(y) for i in range(x) for c in range(cores)]
    return [Chip(n, (i, j, k), c, kind) for n, (i, j, k, c) in enumerate(places)]


def ids(grid: np.ndarray) -> Any:
    return np.vectorize(lambda device: device.id)(grid).tolist()


HOSTS = [Chip(i, (0, 0, 0), platform="cpu", slice_index=i // 4, process_index=i // 2) for i in range(8)]


@pytest.mark.parametrize("shape, devices, expected", [
    ((2, 4), HOSTS, [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ((4, 4), torus(4, 4, 1), np.arange(16).reshape(4, 4).tolist()),
    ((4, 4), torus(2, 2, 4), [[0, 2, 1, 3], [4, 6, 5, 7], [8, 10, 9, 11], [12, 14, 13, 15]]),
    ((16,), torus(2, 2, 4), [0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15]),
    ((8, 2), torus(2, 2, 4), [[0, 1], [4, 5], [8, 9], [12, 13], [2, 3], [6, 7], [10, 11], [14, 15]]),
    ((2, 1, 8), torus(2, 2, 4), [[[0, 4, 8, 12, 1, 5, 9, 13]], [[2, 6, 10, 14, 3, 7, 11, 15]]]),
    ((8,), torus(2, 2, 1, "TPU v3", 2), [0, 1, 2, 3, 6, 7, 4, 5]),
    ((2, 4), torus(4, 2, 1, "TPU v5 lite"), [[0, 1, 2, 3], [7, 6, 5, 4]]),
    ((4,), torus(2, 2, 1, "TPU v5 lite"), [0, 1, 3, 2]),
    ((4, 4), torus(4, 4, 1, "TPU v5 lite"), np.arange(16).reshape(4, 4).tolist()),
])  # fmt: skip
def test_orders_are_those_of_jax(shape: Any, devices: Any, expected: Any) -> None:
    """Recorded from JAX 0.10.2."""
    assert ids(create_device_mesh(shape, devices)) == expected


def test_axes_are_whole_physical_axes_where_that_is_possible() -> None:
    """JAX gives up here, as the last axis takes what the others would need."""
    grid = create_device_mesh((2, 2, 4), torus(2, 2, 4))
    for axis in range(3):
        moved = np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis])
        for line in moved:
            changing = {i for i in range(3) if len({chip.coords[i] for chip in line}) > 1}
            assert len(changing) == 1


def test_physical_axes_are_split_where_that_is_allowed() -> None:
    with pytest.raises(NotImplementedError, match=r"mesh \(8, 2\) must be a product .* allow_split_physical_axes=True"):
        create_device_mesh((8, 2), torus(4, 4, 1))
    grid = create_device_mesh((8, 2), torus(4, 4, 1), allow_split_physical_axes=True)
    assert sorted(np.ravel(ids(grid))) == list(range(16))
    assert all(sum(abs(a - b) for a, b in zip(p.coords, q.coords, strict=True)) == 1 for p, q in grid)


def test_granules_are_the_outer_blocks() -> None:
    """Recorded from JAX 0.10.2."""
    assert ids(create_hybrid_device_mesh((2, 2), (2, 1), HOSTS)) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert ids(create_hybrid_device_mesh((2, 2), (1, 2), HOSTS)) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    by_process = create_hybrid_device_mesh((2, 1), (2, 2), HOSTS, process_is_granule=True)
    assert ids(by_process) == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_a_mesh_of_real_devices_computes() -> None:
    mesh = xlamini.sharding.Mesh(create_device_mesh((2, 4)), ("a", "b"))
    x = xlamini.device_put(np.arange(8.0, dtype="float32"), xlamini.NamedSharding(mesh, xlamini.P(("a", "b"))))
    assert float(x.sum()) == 28 and len(x.addressable_shards) == 8


def test_topologies() -> None:
    attached = topologies.get_attached_topology()
    assert attached.devices == xlamini.devices() and topologies.get_attached_topology("cpu").devices
    mesh = topologies.make_mesh(attached, (4, 2), ("a", "b"))
    assert dict(mesh.shape) == {"a": 4, "b": 2}
    with pytest.raises(xlamini.errors.TargetError, match="options of plugins are not supported, got chips"):
        topologies.get_topology_desc("v5e:2x2", "tpu", chips=3)
    with pytest.raises(xlamini.errors.TargetError, match="no TPU chip 'v99'"):
        topologies.get_topology_desc("v99:2x2", "tpu")


def test_the_folder_of_the_compilation_cache(tmp_path: Any) -> None:
    names, before = compilation_cache.compilation_cache, xlamini.config.compilation_cache_dir
    try:
        names.set_cache_dir(tmp_path)
        names.reset_cache()
        assert xlamini.cache.directory() == str(tmp_path)
    finally:
        names.set_cache_dir(before)


@pytest.mark.parametrize("call, error, text", [
    (lambda: create_device_mesh((3,), HOSTS), ValueError, r"mesh_shape \(3,\) has 3 devices, but there are 8"),
    (lambda: create_device_mesh((3,), torus(2, 2, 1)[:3]), ValueError, r"do not fill a box of \[2, 2, 1, 1\]"),
    (lambda: create_hybrid_device_mesh((2, 2), (2, 2), HOSTS), ValueError, "4 granules, .* 2 values of slice_index"),
    (lambda: create_hybrid_device_mesh((2,), (2, 1), HOSTS), ValueError, "differ in length"),
])  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
