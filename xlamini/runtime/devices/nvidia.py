"""NVIDIA's libraries: loading from their wheels, and a check of their versions against those the plugin was built for.

A missing or old library makes programs fail late and obscurely, so the check runs before the first program.
"""
from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jaxlib.version

from xlamini.core import PlatformError
from xlamini.runtime.devices.plugins import folders, plugin

KERNEL_PACKAGES = ("jax_cuda13_plugin", "jax_cuda12_plugin")


class Library(NamedTuple):
    """A CUDA library: its name, the prefix of its version functions, and the divisor that drops minor digits."""

    name: str
    asked: str
    ignored_digits: int


class LibraryVersion(NamedTuple):
    """The version of a library and the version the plugin was built for; `version` is None if it cannot be loaded."""

    library: Library
    version: int | None
    built_for: int

    @property
    def fits(self) -> bool:
        """Whether the library can be loaded and is not older than the plugin needs."""
        least = self.built_for // self.library.ignored_digits
        return self.version is not None and self.version // self.library.ignored_digits >= least


LIBRARIES = (
    Library("CUDA runtime", "cuda_runtime", 1000),
    Library("cuDNN", "cudnn", 100),
    Library("cuBLAS", "cublas", 10000),
    Library("cuFFT", "cufft", 1000),
    Library("cuSPARSE", "cusparse", 1000),
)
_FIRST = ("libcudart", "libnvrtc", "libcublasLt", "libcublas", "libnvJitLink")


def check() -> None:
    """Raise PlatformError for the first library that is missing or too old."""
    load_libraries()
    for found in versions():
        if not found.fits:
            raise PlatformError(f"{problem(found)}; {fix()}")


def problem(found: LibraryVersion) -> str:
    """The problem with a library, in words."""
    if found.version is None:
        return f"{found.library.name} cannot be loaded"
    return f"{found.library.name} is version {found.version}, but the plugin was built for {found.built_for}"


def fix() -> str:
    """The command that installs matching libraries."""
    number = "12" if "cuda12" in str(plugin("cuda").library) else "13"
    return f'run: pip install "jax-cuda{number}-plugin[with-cuda]=={jaxlib.version.__version__}"'


def versions() -> Iterator[LibraryVersion]:
    """The versions of all libraries; none if the package that reports them is not installed."""
    asks = kernel_module("_versions")
    for library in LIBRARIES if asks is not None else ():
        built_for = getattr(asks, f"{library.asked}_build_version")()
        yield LibraryVersion(library, _version(getattr(asks, f"{library.asked}_get_version")), built_for)


def _version(ask: Any) -> int | None:
    try:
        return ask()
    except Exception:  # whatever the C++ function raises, the library is unusable
        return None


def kernel_module(name: str) -> Any:
    """A module of the wheel with CUDA's kernels; None if it is not installed."""
    for package in KERNEL_PACKAGES:
        try:
            return importlib.import_module(f"{package}.{name}")
        except ImportError:
            continue
    return None


@functools.cache
def toolkit() -> str | None:
    """The folder of the CUDA toolkit in NVIDIA's wheels (libdevice); None if XLA must search the system for one."""
    places = [folder / part for folder in folders("nvidia") for part in ("cu13", "cuda_nvcc")]
    return next((str(place) for place in places if (place / "nvvm/libdevice").is_dir()), None)


@functools.cache
def load_libraries() -> None:
    """Load the libraries of NVIDIA's wheels first, so that they take precedence over the system's."""
    for file in sorted(_library_files(), key=_order):
        try:
            ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL if file.name.startswith("libcudart") else ctypes.RTLD_LOCAL)
        except OSError:
            continue  # `check` reports what is missing


def _library_files() -> Iterator[Path]:
    for folder in folders("nvidia"):
        for part in ("cu13", "cuda_runtime", "cuda_nvrtc", "cublas", "cusparse", "cusolver", "cufft", "cudnn", "nccl"):
            yield from (folder / part / "lib").glob("lib*.so.[0-9]*")


def _order(file: Path) -> tuple[int, str]:
    first = next((i for i, name in enumerate(_FIRST) if file.name.startswith(name)), len(_FIRST))
    return first, file.name
