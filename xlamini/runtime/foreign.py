"""Kernels that are no operations of XLA: LAPACK's on the CPU, cuSOLVER's and the like on a GPU.

jaxlib and its GPU plugins hold them as functions that XLA finds by name, once they are registered. That happens here,
when the first program that calls one is lowered: nothing is imported before.
"""
from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterable
from typing import Any

from jaxlib import _jax

from xlamini.runtime.platforms import plugin_api

_lock = threading.Lock()
_CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
_GPU_MODULES = ("_solver", "_linalg", "_prng", "_sparse", "_hybrid", "_rnn")


def register_kernels(platform: str) -> None:
    """Make a platform's kernels known to XLA; nothing happens the second time.

    Where a plugin is not installed programs can still be lowered; XLA says then which kernel it lacks.
    """
    with _lock:
        _register(platform)


@functools.cache
def _register(platform: str) -> None:
    register = {"cpu": _register_cpu, "cuda": _register_cuda, "gpu": _register_cuda}.get(platform)
    if register is not None:
        register()


def _register_cpu() -> None:
    lapack = importlib.import_module("jaxlib.cpu._lapack")
    lapack.initialize()  # looks LAPACK's functions up in SciPy, which takes 0.15 s
    _register_each(_jax.register_custom_call_target, "cpu", lapack.registrations())


def _register_cuda() -> None:
    api, extension = plugin_api("cuda"), _cuda_module("cuda_plugin_extension")
    if api is None or extension is None:
        return
    for name, type_id in extension.ffi_types().items():
        extension.register_custom_type(api, name, type_id)
    register = functools.partial(extension.register_custom_call_target, api)
    _register_each(register, "CUDA", extension.ffi_handlers(), typed=True)
    for name in _GPU_MODULES:
        module = _cuda_module(name)
        if module is not None:
            _register_each(register, "CUDA", module.registrations(), typed=name in ("_linalg", "_hybrid"))


def _cuda_module(name: str) -> Any:
    for plugin in _CUDA_PLUGINS:
        try:
            return importlib.import_module(f"{plugin}.{name}")
        except ImportError:
            continue
    return None


def _register_each(register: Callable[..., None], platform: str, kernels: Any, typed: bool = False) -> None:
    """Register functions by their names; only those of the typed interface, which say so in their names or `typed`."""
    pairs: Iterable[tuple[str, Any]] = kernels.items() if isinstance(kernels, dict) else kernels
    for name, function in pairs:
        register(name, function, platform, int(typed or name.endswith("_ffi")), 0)
