"""Platforms: which are found, which is chosen, what an error says; arrays between devices and memories.

A second platform is had without an accelerator: `toy` is another client of the CPU, with two devices.
"""
from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support import broken_setups as broken
from xlamini import config, numpy as jnp
from xlamini.core.flags import device_flags as flags
from xlamini.errors import PlatformError
from xlamini.runtime.devices import client_options, clients, ffi_targets, hardware, nvidia, platforms, plugins
from xlamini.runtime.devices.pjrt_version import plugin_version
from xlamini.runtime.sharding import SingleDeviceSharding

needs_compiler = pytest.mark.skipif(broken.COMPILER is None, reason="a plugin is compiled with gcc")


@pytest.fixture(scope="module")
def toy() -> list[Any]:
    from jaxlib import _jax

    platforms.register_platform("toy", lambda: _jax.get_tfrt_cpu_client(num_devices=2))
    return xlamini.devices("toy")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages, on the path of this process, which has no accelerator and has chosen no platform yet."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(platforms, "_default_names", {})
    for name in hardware._CHECKS:
        monkeypatch.setitem(hardware._CHECKS, name, lambda: "there is no such device")
    before = config.pjrt_plugins
    with flags.platforms(None):
        yield tmp_path
    config.update("pjrt_plugins", before)


def child(code: str, **environment: str) -> str:
    """What a Python process of its own prints."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_cpu_is_always_there() -> None:
    assert [d.platform for d in xlamini.devices("cpu")] == ["cpu"] * 8
    assert xlamini.device_count("cpu") == xlamini.local_device_count("cpu") == 8
    assert xlamini.devices(xlamini.devices("cpu")[0].client) == xlamini.devices("cpu")
    assert xlamini.process_index() == 0 and xlamini.process_count() == 1 and xlamini.process_indices() == [0]
    assert xlamini.local_devices(process_index=0) == xlamini.local_devices(host_id=0) == xlamini.local_devices()
    assert xlamini.devices("cpu")[0].memory_stats() is None


def test_the_choice(toy: list[Any]) -> None:
    with flags.platforms("toy,cpu"):
        assert xlamini.default_backend() == "toy"
        assert xlamini.devices() == toy and xlamini.device_count() == 2
        assert jnp.ones(2).device == toy[0]
    assert jnp.ones(2).device == xlamini.devices("cpu")[0]


def test_jit_follows_the_choice(toy: list[Any]) -> None:
    twice = xlamini.jit(lambda x: x * 2)
    for _ in range(3):
        assert twice(3.0).device == xlamini.local_devices(backend="cpu")[0]
        with flags.platforms(" toy "):
            assert twice(3.0).device == toy[0]
    on_toy = xlamini.jit(lambda x: x * 2, backend="toy")
    assert on_toy(3.0).device == toy[0] and on_toy(3.0).committed
    assert xlamini.jit(lambda x: x * 2, device=toy[1])(3.0).device == toy[1]


def test_default_device(toy: list[Any]) -> None:
    for place in (toy[1], toy[0]):
        with xlamini.default_device(place):
            assert jnp.ones(2).device == place and xlamini.jit(lambda: jnp.zeros(2))().device == place
    with xlamini.default_device("toy"):
        assert jnp.ones(2).device == toy[0] and not jnp.ones(2).committed
    config.update("jax_default_device", toy[1])
    assert jnp.ones(2).device == toy[1]
    config.update("jax_default_device", None)
    assert jnp.ones(2).device == xlamini.devices("cpu")[0]


def test_between_platforms(toy: list[Any]) -> None:
    x = jnp.arange(6, dtype="bfloat16").reshape(2, 3)
    there = xlamini.device_put(x, toy[1])
    back = xlamini.device_put(there, xlamini.devices("cpu")[0])
    assert there.device == toy[1] and back.device == x.device and there.committed
    np.testing.assert_array_equal(np.asarray(back), np.asarray(x))
    assert xlamini.grad(lambda y: (y * y).sum())(there).device == toy[1]
    assert (there + jnp.ones(3, "bfloat16")).device == toy[1], "what is not committed goes along"
    assert xlamini.device_put(jnp.asarray(2.0) * 1, toy[0]).weak_type == (jnp.asarray(2.0) * 1).weak_type


def test_trees_of_places(toy: list[Any]) -> None:
    cpu = xlamini.devices("cpu")[0]
    x = {"a": np.ones(2), "b": (1, jnp.ones(3))}
    placed = xlamini.device_put(x, {"a": toy[0], "b": SingleDeviceSharding(cpu)})
    assert placed["a"].device == toy[0] and {leaf.device for leaf in placed["b"]} == {cpu}
    placed = xlamini.device_put(x, {"a": None, "b": (toy[0], toy[1])})
    assert [leaf.device for leaf in (placed["a"], *placed["b"])] == [cpu, toy[0], toy[1]]
    assert [leaf.committed for leaf in (placed["a"], *placed["b"])] == [False, True, True]


def test_donated_and_copied(toy: list[Any]) -> None:
    x, y = jnp.ones(3), jnp.ones(3)
    there = xlamini.device_put({"x": x, "y": y}, toy[0], donate={"x": True, "y": False})
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(np.asarray(there["x"]), np.ones(3))
    z = xlamini.device_put(y, may_alias=False)
    assert z.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
    assert xlamini.device_put(y, y.device, donate=True) is not None and not y.is_deleted()


def test_memory_kinds() -> None:
    """Texts and equalities as recorded from JAX 0.10.2."""
    device = xlamini.devices("cpu")[0]
    plain, pinned = SingleDeviceSharding(device), SingleDeviceSharding(device, memory_kind="pinned_host")
    assert repr(pinned) == "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=pinned_host)"
    assert plain.memory_kind == "device" and plain == plain.with_memory_kind("device")
    assert plain != plain.with_memory_kind("unpinned_host") and plain.with_memory_kind("pinned_host") == pinned
    assert device.default_memory().kind == "device"
    assert [m.kind for m in device.addressable_memories()] == ["device", "pinned_host", "unpinned_host"]


@pytest.mark.parametrize("kind", ["pinned_host", "unpinned_host"])
def test_arrays_in_memories_of_the_host(kind: str) -> None:
    device = xlamini.devices("cpu")[0]
    there = SingleDeviceSharding(device, memory_kind=kind)
    x = xlamini.device_put(np.arange(4.0), there)
    assert x.sharding == there and x.sharding.memory_kind == kind and x.committed and x.device == device
    np.testing.assert_array_equal(np.asarray(x), np.arange(4.0))
    twice = xlamini.jit(lambda y: y * 2)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(twice(x)), 2 * np.arange(4.0))
        np.testing.assert_array_equal(np.asarray(twice(jnp.arange(4.0))), 2 * np.arange(4.0))
    np.testing.assert_array_equal(np.asarray(xlamini.grad(lambda y: (y * y).sum())(x)), 2 * np.arange(4.0))
    back = xlamini.device_put(x, device)
    assert back.sharding == SingleDeviceSharding(device)
    assert xlamini.device_put(back, there).sharding.memory_kind == kind


def test_live_arrays(toy: list[Any]) -> None:
    x, y = jnp.arange(5), xlamini.device_put(np.arange(7), toy[0])
    assert any(z is x for z in xlamini.live_arrays()) and any(z is y for z in xlamini.live_arrays("toy"))
    assert not any(z is x for z in xlamini.live_arrays("toy"))
    x.delete()
    assert not any(z is x for z in xlamini.live_arrays("cpu"))


def test_protocols_of_arrays() -> None:
    x = jnp.ones(2)
    assert x.__array_namespace__() is jnp
    if x.device.platform == "cpu":
        assert not hasattr(x, "__cuda_array_interface__") and "jax" not in sys.modules


def test_one_client_for_all_threads() -> None:
    made = []

    def make() -> Any:
        made.append(None)
        return xlamini.devices("cpu")[0].client

    platforms.register_platform("once", make)
    threads = [threading.Thread(target=platforms.client, args=("once",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


@pytest.mark.full
def test_nothing_is_scanned_or_imported(tmp_path: Path) -> None:
    """Neither jax nor a plugin's own module is imported, nor the slow reader of entry points."""
    broken.entry_point(tmp_path, "trap", "trap")
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap/__init__.py").write_text("import jax")
    code = """
import sys, xlamini
before = set(sys.modules)
xlamini.devices("cpu"); xlamini.devices()
print(sorted({"jax", "trap", "jax_plugins", "importlib.metadata"} & set(sys.modules)))
"""
    path = os.pathsep.join([str(tmp_path), *sys.path])
    assert child(code, PYTHONPATH=path, XLAMINI_PLATFORMS="").strip() == "[]"


@pytest.mark.parametrize("asked", ["cuda", "tpu", "rocm", "gpu", "cuda,cpu", "toy_that_is_not"])
def test_what_is_asked_for_and_fails_is_an_error(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cuda", "tpu", "rocm"):
        monkeypatch.setitem(hardware._CHECKS, name, lambda: "there is no such device")
        monkeypatch.setattr(clients, "_started", {})
    monkeypatch.setattr(clients, "load_plugin", lambda name: 1 / 0)
    monkeypatch.setattr(platforms, "_default_names", {})
    with flags.platforms(asked):
        for call in (xlamini.devices, xlamini.default_backend, lambda: jnp.ones(2) + 1):
            with pytest.raises(PlatformError, match=r"doctor --platform|there is no platform 'toy_that"):
                call()


def test_a_failing_accelerator_is_passed_over_with_one_warning(folder: Path) -> None:
    broken.entry_point(folder, "frail", "frail_plugin")
    broken.damaged(folder / "frail_plugin/pjrt_frail.so")
    with pytest.warns(RuntimeWarning, match="platform 'frail' failed to initialize.*doctor --platform frail") as told:
        assert xlamini.default_backend() == "cpu"
    assert len(told) == 1 and "XLAMINI_PLATFORMS=cpu" in str(told[0].message)
    assert xlamini.default_backend() == "cpu"


def test_a_plugin_that_works_is_preferred(folder: Path, monkeypatch: pytest.MonkeyPatch, toy: list[Any]) -> None:
    broken.entry_point(folder, "brisk", "brisk_plugin")
    broken.damaged(folder / "brisk_plugin/pjrt_brisk.so")
    platforms.register_platform("brisk", lambda: toy[0].client)
    assert xlamini.default_backend() == "brisk"
    monkeypatch.setattr(platforms, "_default_names", {})
    with flags.platforms("cpu"):
        assert xlamini.default_backend() == "cpu"


def test_a_device_without_its_plugin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hardware._CHECKS, "cuda", lambda: None)
    monkeypatch.setattr(platforms, "candidates", lambda name: iter(()))
    with pytest.warns(RuntimeWarning, match="'cuda', but its plugin is not installed; run: pip") as told:
        assert xlamini.default_backend() == "cpu"
    assert "(python -m xlamini doctor says more)" in str(told[0].message) and told[0].filename == __file__


def test_where_plugins_are_found(folder: Path) -> None:
    wheel = broken.damaged(folder / "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    mine = broken.damaged(folder / "mine.so")
    assert plugins.plugin_library("cuda") == wheel
    assert plugins.plugin("cuda").source == "wheel jax-cuda13-pjrt"
    config.update("pjrt_plugins", f"cuda:{mine}, extra:{mine}")
    assert plugins.plugin_library("cuda") == mine and plugins.plugin_library("extra") == mine
    assert "extra" in clients.preferred_platforms()
    broken.entry_point(folder, "metal", "metal_plugin:initialize")
    broken.damaged(folder / "metal_plugin/libhelper.dylib")
    broken.damaged(folder / "metal_plugin/pjrt_plugin_metal.dylib")
    (folder / "metal_plugin/__init__.py").write_text("raise ImportError('never imported')")
    plugins._entry_points.cache_clear()
    assert plugins.plugin_library("metal").name == "pjrt_plugin_metal.dylib"
    assert plugins.plugin("metal").source == "entry point metal = metal_plugin"


def test_a_library_that_is_found_twice_stands_where_it_is_first(folder: Path) -> None:
    first = broken.damaged(folder / "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    second = broken.damaged(folder / "jax_plugins/xla_cuda12/xla_cuda_plugin.so")
    config.update("pjrt_plugins", f"cuda:{second}")
    assert [p.library for p in plugins.installed() if p.name == "cuda"] == [second, first]
    assert plugins.installed()[0] == plugins.plugin("cuda")


def test_the_variable_of_libtpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(broken.damaged(folder / "own.so")))
    assert plugins.plugin_library("tpu") == folder / "own.so"


@needs_compiler
def test_a_plugin_is_loaded_once(folder: Path) -> None:
    config.update("pjrt_plugins", f"onceloaded:{broken.plugin(folder / 'once.so')}")
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(plugins.load_plugin("onceloaded"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(capsule) for capsule in found}) == 1 and plugins.loaded_plugin("onceloaded") is found[0]
    assert plugin_version(found[0]) == (0, 112)


def test_a_tpu_that_is_not_there_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its library would ask a server for minutes, and complain."""
    monkeypatch.setattr(os, "environ", {"TPU_WORKER_HOSTNAMES": "mine"})
    monkeypatch.setattr(hardware, "_no_tpu", lambda: "there is no TPU")
    hardware.prepare("tpu")
    assert os.environ["TPU_SKIP_MDS_QUERY"] == "1" and os.environ["TPU_WORKER_HOSTNAMES"] == "mine"


def test_options_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR"):
        monkeypatch.delenv(variable, raising=False)
    assert client_options.gpu_options("rocm") == {"platform_name": "ROCM", "allocator": "default"}
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "PLATFORM")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "2")
    expected = {"platform_name": "cuda", "allocator": "platform", "memory_fraction": 0.5, "preallocate": False}
    assert client_options.gpu_options("cuda") == {**expected, "collective_memory_size": 2 << 20}
    with flags.memory_fraction(0.25), flags.preallocate(True), flags.allocator("bfc"):
        assert client_options.memory_fraction() == 0.25 and client_options.preallocate() is True
        assert client_options.allocator() == "bfc"


def test_visible_and_imitated_gpus() -> None:
    options = client_options.gpu_options
    with flags.cuda_visible_devices("0, 2"), flags.rocm_visible_devices("1"):
        assert (options("cuda")["visible_devices"], options("rocm")["visible_devices"]) == ([0, 2], [1])
    with flags.cuda_visible_devices("first"), pytest.raises(PlatformError, match="cuda_visible_devices takes 'all' or"):
        options("cuda")
    with flags.mock_gpu_topology("2 x 3 x 8"):
        mocked = {"enable_mock_nccl": True, "num_nodes": 6, "mock_gpu_topology": "2 x 3 x 8"}
        assert options("cuda").items() >= mocked.items()
    with flags.mock_num_gpu_processes(5):
        assert options("cuda").items() >= {"enable_mock_nccl": True, "num_nodes": 5}.items()
    with flags.mock_gpu_topology("2x3"), pytest.raises(PlatformError, match="mock_gpu_topology takes '2 x 4 x 8'"):
        options("cuda")


def test_options_of_the_users() -> None:
    assert client_options.user_options() == {}
    with flags.pjrt_client_create_options("a:1; b:0.5;c:true;d:x:y;"):
        assert client_options.user_options() == {"a": 1, "b": 0.5, "c": True, "d": "x:y"}
    message = "takes 'name:value;name:value', not 'a=1'"
    with flags.pjrt_client_create_options("a=1"), pytest.raises(PlatformError, match=message):
        client_options.user_options()


def test_the_order_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [SimpleNamespace(id=i, process_index=p) for i, p in ((3, 0), (0, 1), (2, 0), (1, 1))]
    monkeypatch.setattr(platforms, "client", lambda backend: SimpleNamespace(devices=lambda: places))
    assert [d.id for d in platforms.devices()] == [2, 3, 0, 1]
    with flags.sort_devices_by_process_index(False):
        assert [d.id for d in platforms.devices()] == [0, 1, 2, 3]


def test_libraries_of_cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    broken.without_cudnn(tmp_path)
    for name in [n for n in sys.modules if n.startswith("jax_cuda13_plugin")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(nvidia, "fix", lambda: "run: pip")
    assert [f.library.name for f in nvidia.versions() if not f.fits] == ["cuDNN"]
    with pytest.raises(PlatformError, match="cuDNN cannot be loaded; run: pip"):
        nvidia.check()
    runtime = nvidia.LIBRARIES[0]
    assert nvidia.LibraryVersion(runtime, 13010, 13000).fits and not nvidia.LibraryVersion(runtime, 12090, 13000).fits


def test_kernels_are_registered_once_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ffi_targets, "_registered", set())
    monkeypatch.setattr(ffi_targets, "loaded_plugin", lambda name: None)
    ffi_targets.register_kernels("cuda")
    ffi_targets.register_kernels("quantum")
    assert ffi_targets._registered == {"quantum"}


def test_kernels_of_another_release_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "old_kernels").mkdir()
    (tmp_path / "old_kernels/__init__.py").touch()
    (tmp_path / "old_kernels/version.py").write_text("__version__ = '0.1'")
    with pytest.warns(RuntimeWarning, match=r'old-kernels 0.1 does not fit jaxlib .* run: pip install "old-kernels'):
        assert ffi_targets._fitting_package(ffi_targets.Kernels(("old_kernels",), "extension", "CUDA")) is None


def test_the_compiler_finds_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nvidia, "folders", lambda name: [tmp_path])
    nvidia.toolkit.cache_clear()
    assert nvidia.toolkit() is None
    nvidia.toolkit.cache_clear()
    (tmp_path / "cu13/nvvm/libdevice").mkdir(parents=True)
    assert nvidia.toolkit() == str(tmp_path / "cu13")
    nvidia.toolkit.cache_clear()
