"""Facts about the machine that need no platform to be started: versions, environment variables, files."""
from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path

import xlamini
from xlamini.core.console import printable
from xlamini.core.flags.cache_flags import least_seconds, most_bytes
from xlamini.runtime.devices.plugins import WHEELS, Plugin
from xlamini.runtime.files.cache_folder import folder, why_off
from xlamini.runtime.files.disk_cache import files_in

VARIABLES = re.compile(
    r"(XLAMINI|XLA|JAX|TPU|LIBTPU|CUDA|NVIDIA|HIP|ROCR|PJRT|TF_CPP|NCCL)_|LD_LIBRARY_PATH$|LD_PRELOAD$|MALLOC_"
)
SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|KEY")
_PACKAGES = ("jaxlib", "numpy", "ml_dtypes", "scipy")
_PLUGIN_PACKAGES = (
    "jax-cuda13-pjrt", "jax-cuda13-plugin", "jax-cuda12-pjrt", "jax-cuda12-plugin", "jax-rocm7-pjrt",
    "jax-rocm7-plugin", "libtpu",
)


def version(package: str) -> str | None:
    """The version of an installed package; None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str]:
    """The versions of Python, xlamini and its dependencies."""
    found = {name: version(name) for name in (*_PACKAGES, *_PLUGIN_PACKAGES)}
    known = {name: text for name, text in found.items() if text is not None}
    return {"python": platform.python_version(), "xlamini": xlamini.__version__, **known}


def machine() -> str:
    """The operating system, the processors and the Python interpreter."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"{system}, {os.cpu_count()} processors; {sys.executable}"


def environment() -> dict[str, str]:
    """The environment variables that affect platforms."""
    return {
        name: "(set)" if SECRET.search(name) else value
        for name, value in sorted(os.environ.items())
        if VARIABLES.match(name)
    }


def programs_on_disk() -> dict[str, str]:
    """The folder of compiled programs, what is in it, and how to do without; or why there is none."""
    try:
        where = folder()
    except ValueError as error:
        return {"off": str(error)}
    if where is None:
        return {"off": why_off()}
    files, most = list(files_in(where)), most_bytes()
    limit = f" of {most / 2**20:.0f} MB at most" if most >= 0 else ""
    return {
        "folder": where,
        "size": f"{len(files)} programs, {sum(file.size for file in files) / 2**20:.1f} MB{limit}",
        "kept": f"what takes {least_seconds():g} s to compile; XLAMINI_ENABLE_COMPILATION_CACHE=0 turns it off",
    }


def nvidia_driver() -> str | None:
    """The version of NVIDIA's kernel module; None if it is not loaded."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"\b(\d+\.\d+(\.\d+)?)\b", text)
    return found.group(1) if found else None


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the environment for a bug report: versions, the machine, the devices in use.

    With `return_string` the text is returned instead. `python -m xlamini doctor` reports much more.

    >>> "jaxlib" in (xlamini.print_environment_info(return_string=True) or "")
    True
    """
    devices = xlamini.local_devices()
    used = f"{xlamini.default_backend()}, {len(devices)} local devices ({devices[0].device_kind})"
    facts = {**versions(), "machine": machine(), "devices": used, "processes": str(xlamini.process_count())}
    text = "\n".join(f"{name + ':':<19}{value}" for name, value in facts.items())
    if return_string:
        return text
    print(printable(text))
    return None


def package_of(plugin: Plugin) -> str | None:
    """The package of a plugin, with its version; None if the plugin is from no listed wheel."""
    names = [wheel.install for wheel in WHEELS if plugin.source == f"wheel {wheel.install}"]
    return f"{names[0]} {version(names[0]) or ''}".strip() if names else None
