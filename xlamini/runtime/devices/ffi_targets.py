"""FFI targets: kernels outside XLA that custom calls name, such as LAPACK's on the CPU and cuSOLVER's on a GPU.

jaxlib and its GPU plugins contain the functions; XLA looks them up by name once they are registered. Registration
happens when the first program that calls one is lowered, so that nothing is imported before.
"""
from __future__ import annotations

import functools
import importlib
import re
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jaxlib.version
from jaxlib import _jax

from xlamini.core.errors import FfiTargetError, JaxRuntimeError
from xlamini.runtime.devices.nvidia import KERNEL_PACKAGES
from xlamini.runtime.devices.plugins import loaded_plugin

_lock = threading.Lock()
_registered: set[str] = set()
_MODULES = ("_solver", "_linalg", "_prng", "_sparse", "_hybrid", "_rnn", "_triton")
_TYPED = ("_linalg", "_hybrid")  # all their functions have the typed FFI, whatever their names
_MISSING = re.compile(r"No FFI handler registered for (.+) on a platform|untyped custom call to (.+) for", re.DOTALL)

batch_partitionable: list[str] = []
"""The targets that were declared batch partitionable, for platforms whose plugin is loaded later."""


class Kernels(NamedTuple):
    """The kernels of a kind of GPU: the packages, their registration module, and XLA's name for the platform."""

    packages: tuple[str, ...]
    extension: str
    target: str


_GPUS = {
    "cuda": Kernels(KERNEL_PACKAGES, "cuda_plugin_extension", "CUDA"),
    "rocm": Kernels(("jax_rocm7_plugin", "jax_rocm60_plugin"), "rocm_plugin_extension", "ROCM"),
}


def register_kernels(platform: str) -> None:
    """Register a platform's kernels with XLA, once.

    Without the plugin programs can still be lowered; XLA then reports the missing kernel.
    """
    name = "cuda" if platform == "gpu" and loaded_plugin("rocm") is None else platform
    with _lock:
        if name not in _registered and _register(name):
            _registered.add(name)


def require_target(target: str, platform: str) -> None:
    """Register jaxlib's kernels, unless the target is one that others have registered."""
    if platform != "cpu" or target not in _targets():
        register_kernels(platform)


def _targets() -> dict[str, Any]:
    """The targets that are registered for the CPU, by name."""
    return _jax.custom_call_targets("Host")


def partition_along_batch(target: str) -> None:
    """Declare a target batch partitionable, once, to XLA and to the plugins that have been loaded."""
    if target in batch_partitionable:
        return
    batch_partitionable.append(target)
    _jax.register_custom_call_as_batch_partitionable(target)
    for name in _GPUS:
        api = loaded_plugin(name)
        if api is not None:
            _jax.register_custom_call_as_batch_partitionable(target, api)


def explained(error: JaxRuntimeError, platform: str) -> JaxRuntimeError:
    """The FfiTargetError for a program that calls an unknown target; XLA's `error` itself if it has another cause."""
    found = _MISSING.search(str(error))
    if found is None:
        return error
    return FfiTargetError(_why_missing(found[1] or found[2], found[1] is not None, platform))


def _why_missing(target: str, typed: bool, platform: str) -> str:
    if platform != "cpu":
        return f"no FFI target {target!r} is registered for {platform}; {_remedy(target, platform)}"
    register_kernels("cpu")
    known = _targets()
    if target in known and not typed:
        return f"the FFI target {target!r} is typed; leave out custom_call_api_version"
    names = ", ".join(sorted(n for n in known if not n.startswith(("lapack_", "xla_"))))
    return (
        f"no FFI target {target!r} is registered for the CPU; there are {names}, and LAPACK's such as "
        f"lapack_spotrf_ffi; {_remedy(target, platform)}"
    )


def _remedy(target: str, platform: str) -> str:
    return f"call register_ffi_target({target!r}, fn, platform={platform!r}) before the program is compiled or loaded"


def _register(name: str) -> bool:
    """Register a platform's kernels; False if its plugin has not been loaded yet, so that a later call retries."""
    if name == "cpu":
        _register_cpu()
    return name not in _GPUS or _register_gpu(name, _GPUS[name])


def _register_cpu() -> None:
    lapack = importlib.import_module("jaxlib.cpu._lapack")
    lapack.initialize()  # imports SciPy for LAPACK's functions, which takes 0.15 s
    _register_each(_jax.register_custom_call_target, "cpu", lapack.registrations())


def _register_gpu(name: str, kernels: Kernels) -> bool:
    api, package = loaded_plugin(name), _fitting_package(kernels)
    if api is None or package is None:
        return False
    extension = importlib.import_module(f"{package}.{kernels.extension}")
    for type_name, type_id in extension.ffi_types().items():
        extension.register_custom_type(api, type_name, type_id)
    register = functools.partial(extension.register_custom_call_target, api)
    _register_of_users(kernels.target, register, functools.partial(extension.register_custom_type, api))
    for target in batch_partitionable:
        _jax.register_custom_call_as_batch_partitionable(target, api)
    _register_each(register, kernels.target, extension.ffi_handlers(), typed=True)
    for part in _MODULES:
        module = _module(f"{package}.{part}")
        if module is None:
            continue
        _register_each(register, kernels.target, module.registrations(), typed=part in _TYPED)
        if part == "_hybrid":
            module.initialize()  # finds SciPy's LAPACK, which its kernels call on the host, and crash without
    return True


def _register_of_users(platform: str, register: Callable[..., None], register_type: Callable[..., None]) -> None:
    """Let `xla_client` pass users' registrations for this platform on, those made so far and later ones."""
    client = importlib.import_module("jaxlib.xla_client")
    client.register_custom_type_handler(platform, register_type)
    client.register_custom_call_handler(platform, register)


def _fitting_package(kernels: Kernels) -> str | None:
    """The package of a GPU's kernels that was built for this jaxlib; None if none is installed."""
    for package in kernels.packages:
        version = getattr(_module(f"{package}.version"), "__version__", None)
        if version == jaxlib.version.__version__ or (version and kernels.target == "ROCM"):
            return package
        if version:
            wheel, here = package.replace("_", "-"), jaxlib.version.__version__
            _warn_once(
                f"{wheel} {version} does not fit jaxlib {here}, so the GPU has no solvers; "
                f'run: pip install "{wheel}[with-cuda]=={here}"'
            )
    return None


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _register_each(register: Callable[..., None], platform: str, kernels: Any, typed: bool = False) -> None:
    """Register functions by name: as typed FFI if `typed` or if the name ends in _ffi, else as the old custom call."""
    pairs: Iterable[tuple[str, Any]] = kernels.items() if isinstance(kernels, dict) else kernels
    for name, function in pairs:
        register(name, function, platform, int(typed or name.endswith("_ffi")), 0)
