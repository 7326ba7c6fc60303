"""PJRT clients: one for each platform, made at its first use.

A platform is a name and a function that makes its client. The CPU's is in jaxlib; every other comes from a plugin.

At exit the library drops its references to the clients. A client is destroyed with the last reference, and waits for
the programs that it runs. XLA's own objects are destroyed after that: a program that still ran would crash the process.
"""
from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from jaxlib import _jax, _profiler

from xlamini.core import PlatformError
from xlamini.core.caching.memo import clear_caches
from xlamini.core.flags import device_flags
from xlamini.core.flags.config import forked
from xlamini.core.waits import announce
from xlamini.runtime import jaxlib_types
from xlamini.runtime.devices import hardware, nvidia
from xlamini.runtime.devices.allocation import keep_freed_memory
from xlamini.runtime.devices.client_options import gpu_options, user_options
from xlamini.runtime.devices.plugins import (
    candidates,
    load_plugin,
    plugins_by_entry_point,
    plugins_by_path,
    quiet,
    with_plugin,
)
from xlamini.runtime.exit_gate import close_gate, wait_for_threads
from xlamini.runtime.processes import group as processes

Device = jaxlib_types.Device
"""A device of a platform: its `platform`, its number `id`, the rank of its process, `process_index`, the vendor's name
for it, `device_kind`. `device_put` and shardings take it, and `memory_stats()` tells what is allocated.

>>> device = xlamini.devices()[0]
>>> device, device.platform, device.id, device.process_index
(CpuDevice(id=0), 'cpu', 0, 0)
>>> xlamini.device_put(1.0, device).device == device
True
"""
Client = jaxlib_types.Client

BUILT_IN = ("cpu", "cuda", "rocm", "tpu")
"""Platforms with a built-in name, whether or not their plugins are installed."""

lock: Final = threading.RLock()
_makers: dict[str, Callable[[], Client]] = {}
_started: dict[str, Client] = {}


class StartListeners:
    """Who is called once, when the next platform has started: until then a program may set how many devices it has."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []

    def tell(self) -> None:
        while self.waiting:
            self.waiting.pop()()


at_start: Final = StartListeners()

CachedFunction = TypeVar("CachedFunction", bound=Any)


def emptied_at_exit(cached: CachedFunction) -> CachedFunction:
    """Clear a function's cache at exit: it holds devices, and these keep a client alive."""
    atexit.register(cached.cache_clear)
    return cached


def _end_clients() -> None:
    if not forked.value:  # a child has none of its parent's threads: a client would wait for them for ever
        close_gate()
        clear_caches()
        wait_for_threads()
        clear_caches()
        _started.clear()


atexit.register(_end_clients)


def register_platform(name: str, make_client: Callable[[], Client]) -> None:
    """Add a platform under `name`; `make_client` is called at its first use."""
    _makers[name] = make_client


def started(name: str) -> Client | None:
    """The client of a platform; None if it has not been started."""
    return _started.get(name)


def started_clients() -> dict[str, Client]:
    """The clients of all platforms that have been started, by name."""
    return dict(_started)


def start(name: str) -> Client:
    """The client of a platform, made on first use.

    Raises:
      PlatformError: the platform is unknown, not installed, or does not start.
    """
    with lock:
        if name not in _started:
            _started[name] = _make_client(name)
            at_start.tell()
        return _started[name]


def known_platforms() -> list[str]:
    """The names of all platforms: built in, registered, or with a plugin."""
    return list(dict.fromkeys([*BUILT_IN, *_makers, *with_plugin()]))


def preferred_platforms() -> list[str]:
    """The platforms to try when flag `platforms` is not set, in order of preference."""
    others = (p.name for p in (*plugins_by_path(), *plugins_by_entry_point()))
    return ["cuda", "rocm", *dict.fromkeys(name for name in others if name not in BUILT_IN), "tpu", "cpu"]


def is_known(name: str) -> bool:
    """Whether a platform of this name exists, installed or not."""
    return name in BUILT_IN or name in _makers or next(candidates(name), None) is not None


def _make_client(name: str) -> Client:
    if not is_known(name):
        raise PlatformError(
            f"Unknown backend {name}: there is no platform {name!r}; xlamini knows {', '.join(known_platforms())}, and "
            f"more by XLAMINI_PJRT_PLUGINS={name}:/path/to/plugin.so"
        )
    quiet()
    try:
        with announce(f"the first use of platform {name!r} has waited for it to start"):
            return _makers.get(name, lambda: _from_plugin(name))()
    except Exception as error:
        raise PlatformError(f"platform {name!r} failed to initialize: {_reason(name, error)}") from error


def _reason(name: str, error: Exception) -> str:
    """The cause of a failed start, and the command to run."""
    absent, text = hardware.missing(name), " ".join(str(error).split())
    if isinstance(error, PlatformError) and "run: " in text and not absent:
        return text
    return f"{absent or text}; for what to do run: python -m xlamini doctor --platform {name}"


def _from_plugin(name: str) -> Client:
    """The client of a plugin, whose library is loaded by its path, because the package's own start-up imports jax."""
    api = load_plugin(name)
    if name == "cuda":
        nvidia.check()
    is_gpu = name in ("cuda", "rocm")  # the TPU plugin has its own rendezvous of processes
    own: dict[str, Any] = {**gpu_options(name), **processes.gpu_options()} if is_gpu else {}
    options = {**own, **user_options()}
    new_client = _jax.get_c_api_client(name, options, processes.client() if is_gpu else None)
    _profiler.register_plugin_profiler(api)
    return new_client


def _make_cpu() -> Client:
    keep_freed_memory()
    asked = device_flags.num_cpu_devices.value
    count = None if asked < 0 else asked  # None: XLA reads --xla_force_host_platform_device_count from XLA_FLAGS
    return _jax.get_tfrt_cpu_client(num_devices=count, **processes.cpu_options())


register_platform("cpu", _make_cpu)
