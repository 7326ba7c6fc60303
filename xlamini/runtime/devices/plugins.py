"""PJRT plugins: the shared libraries of platforms other than the CPU.

Discovery has three sources, each read only when a platform is requested: the flag `pjrt_plugins` (`name:/path.so`),
the wheels listed below, whose layout is fixed, and the entry points through which packages register plugins with JAX.
`jax` is never imported: the library in a package's folder is loaded by its path.
"""
from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jaxlib.version
from jaxlib import _jax, utils as _jaxlib_utils

from xlamini.core import PlatformError
from xlamini.core.flags import device_flags
from xlamini.runtime.devices import hardware


class Plugin(NamedTuple):
    """A plugin's library: the platform, the path, and the source that named it."""

    name: str
    library: Path
    source: str


class Wheel(NamedTuple):
    """A wheel that contains a platform's library: the module's folder, the file, and the name to install."""

    name: str
    module: str
    library: str
    install: str


WHEELS = (
    Wheel("cuda", "jax_plugins.xla_cuda13", "xla_cuda_plugin.so", "jax-cuda13-pjrt"),
    Wheel("cuda", "jax_plugins.xla_cuda12", "xla_cuda_plugin.so", "jax-cuda12-pjrt"),
    Wheel("tpu", "libtpu", "libtpu.so", "libtpu"),
    Wheel("rocm", "jax_plugins.xla_rocm7", "xla_rocm_plugin.so", "jax-rocm7-pjrt"),
    Wheel("rocm", "jax_plugins.xla_rocm60", "xla_rocm_plugin.so", "jax-rocm60-pjrt"),
)
"""For each platform the first wheel is the one to recommend."""

_INSTALL = {
    "cuda": f'pip install "jax-cuda13-plugin[with-cuda]=={jaxlib.version.__version__}" jax-cuda13-pjrt',
    "tpu": "pip install libtpu",
    "rocm": "pip install jax-rocm7-plugin jax-rocm7-pjrt",
}
_lock = threading.RLock()
_loaded: dict[str, Any] = {}


def plugin_library(name: str) -> Path:
    """The path of a platform's plugin library.

    Args:
      name: a platform, such as "cuda" or "tpu".

    Raises:
      PlatformError: it is not installed, or its path is wrong.
    """
    return plugin(name).library


def plugin(name: str) -> Plugin:
    """The plugin of a platform, the first if there are several; raises as `plugin_library` does."""
    found = next(candidates(name), None)
    if found is None:
        raise PlatformError(f"the plugin of platform {name!r} is not installed; {how_to_install(name)}")
    if not found.library.is_file():
        raise PlatformError(f"{found.source} names {found.library} for platform {name!r}, but there is no such file")
    return found


def how_to_install(name: str) -> str:
    """The instruction for installing a platform's plugin."""
    if name in _INSTALL:
        return f"run: {_INSTALL[name]}"
    return f"install the package that brings it, or set XLAMINI_PJRT_PLUGINS={name}:/path/to/plugin.so"


def load_plugin(name: str) -> Any:
    """Load and initialize a platform's plugin once; no client is made and no device is needed.

    Args:
      name: a platform, such as "cuda" or "tpu".

    Returns:
      its C interface, a capsule.

    Raises:
      PlatformError: it is not installed or cannot be loaded.
    """
    with _lock:
        if name not in _loaded:
            _loaded[name] = _load(plugin(name))
        return _loaded[name]


def loaded_plugin(name: str) -> Any:
    """The C API of a plugin; None if it has not been loaded."""
    return _loaded.get(name)


def _load(found: Plugin) -> Any:
    quiet()
    hardware.prepare(found.name)
    try:
        capsule = _jax.load_pjrt_plugin(found.name, str(found.library), c_api=None)
        _jax.initialize_pjrt_plugin(found.name)
    except _jax.JaxRuntimeError as error:
        raise PlatformError(_why_not_loaded(found, str(error))) from error
    return capsule


def _why_not_loaded(found: Plugin, message: str) -> str:
    if "ALREADY_EXISTS" in message:
        return f"platform {found.name!r} has been loaded by other code of this process (jax?); use separate processes"
    return f"its plugin {found.library} cannot be loaded: {message}"


def quiet() -> None:
    """Silence XLA's info logs on stderr, unless the user has set TF_CPP_MIN_LOG_LEVEL."""
    if "TF_CPP_MIN_LOG_LEVEL" not in os.environ:
        _jaxlib_utils.absl_set_min_log_level(1)
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"  # plugins have a logger of their own


def candidates(name: str) -> Iterator[Plugin]:
    """The plugins of a platform, in order of precedence."""
    yield from (p for p in plugins_by_path() if p.name == name)
    yield from (p for p in _in_wheels() if p.name == name)
    yield from (p for p in plugins_by_entry_point() if p.name == name)


def installed() -> list[Plugin]:
    """All plugins, installed or named by the flag, in order of precedence and without duplicates."""
    found: dict[tuple[str, Path], Plugin] = {}
    for each in (*plugins_by_path(), *_in_wheels(), *plugins_by_entry_point()):
        found.setdefault((each.name, each.library), each)
    return list(found.values())


def plugins_by_path() -> list[Plugin]:
    """The plugins that flag `pjrt_plugins` names: `name:/path.so,name2:/path2.so`."""
    text = device_flags.pjrt_plugins.value or ""
    return [_by_path(part.strip()) for part in text.split(",") if part.strip()]


def _by_path(text: str) -> Plugin:
    name, colon, path = text.partition(":")
    if not (name and colon and path):
        raise PlatformError(f"XLAMINI_PJRT_PLUGINS takes name:/path.so, several separated by commas, but has {text!r}")
    return Plugin(name, Path(path), "XLAMINI_PJRT_PLUGINS")


def _in_wheels() -> Iterator[Plugin]:
    override = os.environ.get("TPU_LIBRARY_PATH")
    if override:
        yield Plugin("tpu", Path(override), "TPU_LIBRARY_PATH")
    for wheel in WHEELS:
        for folder in folders(wheel.module):
            if (folder / wheel.library).is_file():
                yield Plugin(wheel.name, folder / wheel.library, f"wheel {wheel.install}")


def with_plugin() -> list[str]:
    """The platforms of all plugins, installed or named by the flag."""
    return list(dict.fromkeys(p.name for p in installed()))


def plugins_by_entry_point() -> Iterator[Plugin]:
    """The plugins of the entry-point group `jax_plugins`, except those of the listed wheels."""
    wheels = {wheel.module for wheel in WHEELS}
    for name, module in _entry_points(tuple(sys.path)):
        library = None if module in wheels else _library_in(folders(module))
        if library is not None:
            yield Plugin(name, library, f"entry point {name} = {module}")


@functools.cache
def _entry_points(path: tuple[str, ...]) -> list[tuple[str, str]]:
    """The entry points of the group, as name and module, read from files: `importlib.metadata` is 20 times slower."""
    files = [file for folder in path for file in _entry_point_files(folder)]
    return [pair for file in files for pair in _group(file)]


def _entry_point_files(folder: str) -> list[str]:
    try:
        packages = [name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return []
    return [os.path.join(folder, name, "entry_points.txt") for name in sorted(packages)]


def _group(file: str) -> list[tuple[str, str]]:
    try:
        text = Path(file).read_text("utf-8")
    except OSError:
        return []
    _, found, section = text.partition("[jax_plugins]")
    lines = section.partition("\n[")[0].splitlines() if found else []
    pairs = [line.partition("=")[::2] for line in lines if "=" in line]
    return [(name.strip(), value.partition(":")[0].partition("[")[0].strip()) for name, value in pairs]


def folders(module: str) -> list[Path]:
    """The folders of a module, without importing it."""
    first, *rest = module.split(".")
    spec = importlib.util.find_spec(first)
    tops = [Path(f) for f in (spec.submodule_search_locations or [])] if spec else []
    return [folder for folder in (top.joinpath(*rest) for top in tops) if folder.is_dir()]


def _library_in(places: list[Path]) -> Path | None:
    libraries = [file for folder in places for file in sorted(folder.iterdir()) if file.suffix in _SUFFIXES]
    named = [file for file in libraries if "pjrt" in file.name or "plugin" in file.name]
    return next(iter(named or libraries), None)


_SUFFIXES = frozenset({".so", ".dylib", ".dll"})
